// Model Explorer's own worker processes and lays out graphs, as its page has it do, and opens all groups, or one.
// Usage: node model_explorer.mjs FOLDER-OF-THE-WEB-APP GRAPHS.json [GROUP]; says what it has made of each graph.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

const [folder, file, group] = process.argv.slice(2);
const answers = [];
let listener = null;
globalThis.self = globalThis;
globalThis.addEventListener = (_, given) => { listener = given; };
globalThis.postMessage = (message) => answers.push(message);
globalThis.OffscreenCanvas = class { // texts are measured on it
    getContext() { return { measureText: (text) => ({ width: 7 * text.length }) }; }
};
const worker = fs.readdirSync(folder).find((name) => /^worker-.*\.js$/.test(name));
vm.runInThisContext(fs.readFileSync(path.join(folder, 'static_files', 'worker_deps.js'), 'utf-8'));
vm.runInThisContext(fs.readFileSync(path.join(folder, worker), 'utf-8'));
const ask = (message) => {
    answers.length = 0;
    listener({ data: message });
    const failed = answers.find((answer) => answer.error);
    if (failed) {
        throw new Error(failed.error);
    }
    return answers.find((answer) => answer.modelGraph).modelGraph;
};
const said = {};
const pane = 'pane';
for (const graph of JSON.parse(fs.readFileSync(file, 'utf-8')).graphs) {
    const closed = ask({
        eventType: 0, paneId: pane, graph, showOnNodeItemTypes: {}, nodeDataProviderRuns: {}, config: {},
        groupNodeChildrenCountThreshold: 1000, flattenLayers: false, keepLayersWithASingleChild: false, initialLayout: true,
    });
    const roots = closed.rootNodes.map((node) => node.id);
    const opened = ask({
        eventType: 2, expand: true, all: !group, groupNodeId: group, modelGraphId: graph.id, rendererId: pane, showOnNodeItemTypes: {},
        nodeDataProviderRuns: {}, config: {},
    });
    const nodes = opened.nodes.filter((node) => node.nodeType === 0);
    said[graph.id] = {
        roots,
        groups: opened.nodes.filter((node) => node.nodeType === 1).map((node) => node.id),
        nodes: Object.fromEntries(nodes.map((node) => [node.id, node])),
        placed: nodes.filter((node) => [node.x, node.y].every(Number.isFinite)).length,
        root: closed.groupNodeAttributes?.[''] ?? null,
    };
}
console.log(JSON.stringify(said));
