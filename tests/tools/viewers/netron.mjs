// Netron's own code opens a model and then an attachment, and says what it would show beside what.
// Usage: node netron.mjs FOLDER-OF-NETRON MODEL.xml ATTACHMENT.json
import fs from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, model, attachment] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(folder, name)));
const { BinaryStream } = await load('base.js');
const { View, ModelFactoryService } = await load('view.js');
const host = {
    environment: () => null,
    event: () => null,
    exception: (error) => { throw error; },
    require: (id) => load(`${id}.js`),
};
const open = async (file, beside) => ({
    identifier: path.basename(file),
    stream: new BinaryStream(new Uint8Array(await fs.readFile(file))),
    asset: (name) => fs.readFile(path.join(folder, name), 'utf-8'),
    request: (name, encoding) => fs.readFile(path.join(folder, name), encoding),
    fetch: async (name) => (await open(path.join(path.dirname(beside), name), beside)).stream,
    require: host.require,
    error: host.exception,
});
const shown = await new ModelFactoryService(host).open(await open(model, model));
const attached = await View.prototype.attach.call({ _model: shown }, await open(attachment, attachment));
const list = (kind, target) => Object.fromEntries(['metadata', 'metrics'].flatMap(
    (category) => shown.attachment[category][kind](target).map((entry) => [entry.name, entry.value])));
const graphs = (graph) => [graph, ...graph.nodes.flatMap(
    (node) => node.attributes.filter((attribute) => attribute.type === 'graph').flatMap((attribute) => graphs(attribute.value)))];
const values = (graph) => {
    const found = new Map();
    const all = [...graph.inputs, ...graph.nodes.flatMap((node) => [...node.inputs, ...node.outputs])];
    for (const value of all.flatMap((argument) => argument.value)) {
        found.set(value.name, list('value', value));
    }
    return Object.fromEntries(found);
};
const said = {
    attached,
    format: shown.format,
    model: list('model', shown),
    graphs: shown.modules.flatMap(graphs).map((graph) => ({
        nodes: graph.nodes.map((node) => ({ name: node.name, type: node.type.name, shown: list('node', node) })),
        values: values(graph),
    })),
};
console.log(JSON.stringify(said));
