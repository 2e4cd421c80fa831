"""irrun ops: what is known of the operations."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from irrun.cli.options import colour, ops_option, paint

if TYPE_CHECKING:
    from irrun.spec.op import Op


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from irrun.spec.registry import registry

    return [name for name in registry().ops if name.lower().startswith(incomplete.lower())]


@click.command()
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--json", "as_json", is_flag=True, help="Print the same for programs.")
@ops_option
@click.pass_context
def ops(context: click.Context, name: str | None, as_json: bool) -> None:
    """List the known operations, or show one: ports, types, attributes, shapes, constraints and source."""
    from irrun.spec.registry import registry

    known = registry()
    known.load_installed()
    chosen = sorted(known.ops.values(), key=lambda op: (op.type.lower(), op.version))
    if name is not None:
        chosen = [op for op in chosen if name.lower() in (op.type.lower(), op.name.lower())]
        if not chosen:
            from irrun.spelling import close_matches

            close = close_matches(name, [*known.ops, *known.types()])
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise click.BadParameter(f"there is no operation {name}{hint}", context, param_hint="NAME")
    if as_json:
        click.echo(json.dumps([_as_data(op) for op in chosen], indent=2, allow_nan=False))
    elif name is None:
        for op in chosen:
            click.echo(f"{op.name:40} {(op.__doc__ or '').splitlines()[0]}")
    else:
        click.echo("\n\n".join(_as_text(op) for op in chosen), color=colour())


def _as_text(op: Op) -> str:
    from irrun.check.documentation import linked

    parts = [paint(op.name, "bold") + f"  in {_opsets(op)}"]
    for title, ports in (("inputs", op.inputs), ("outputs", op.outputs)):
        parts.append(f"{title}:" if ports else f"{title}: none")
        for port in ports:
            extra = " (optional)" if getattr(port, "optional", False) else " (any number)" if port.variadic else ""
            parts.append(f"  {port.name}: {port.type} {port.shape}{extra}")
    if op.types:
        parts.append("types:")
        parts += [f"  {symbol}: {', '.join(_sorted_types(types))}" for symbol, types in op.types.items()]
    if op.attrs:
        parts.append("attributes:")
        parts += [f"  {attr.name}: {attr.kind.name}, {_default(attr)}{_range(attr)}" for attr in op.attrs]
    return "\n".join(parts) + f"\n\n{linked(op)}{_deviations_text(op)}"


def _deviations_text(op: Op) -> str:
    """What OpenVINO does otherwise, one after the other and each with its conditions."""
    from irrun.check.deviations import known_deviations

    known = known_deviations().get(op.name, ())
    if not known:
        return ""
    lines = {
        f"  {deviation.does}; {deviation.because}"
        + (f"\n    where {deviation.conditions}" if deviation.conditions else ""): None
        for deviation in known
    }
    return "\n".join([f"\n\nOpenVINO's {known[0].device} plugin ({known[0].openvino}) deviates:", *lines])


def _as_data(op: Op) -> dict[str, Any]:
    from irrun.check.deviations import known_deviations
    from irrun.check.documentation import constraint_text, labels, source_link, source_page
    from irrun.spec.attributes import REQUIRED
    from irrun.spec.registry import registry

    return {
        "name": op.name,
        "type": op.type,
        "version": op.version,
        "opsets": registry().opsets(op),
        "summary": (op.__doc__ or "").splitlines()[0],
        "inputs": [
            {"name": p.name, "type": p.type, "shape": p.shape, "optional": p.optional, "variadic": p.variadic}
            for p in op.inputs
        ],
        "outputs": [{"name": p.name, "type": p.type, "shape": p.shape, "variadic": p.variadic} for p in op.outputs],
        "types": {symbol: _sorted_types(types) for symbol, types in op.types.items()},
        "attributes": [
            {
                "name": attr.name,
                "kind": attr.kind.name,
                "required": attr.default is REQUIRED,
                "default": None if attr.default is REQUIRED else _number(attr.default),
                "least": _number(attr.least),
                "most": attr.most,
            }
            for attr in op.attrs
        ],
        "constraints": {label: constraint_text(op, label) for label in labels(op)},
        "source": source_page(op),
        "link": source_link(op),
        "deviations": [
            asdict(deviation) | {"conditions": deviation.conditions}
            for deviation in known_deviations().get(op.name, ())
        ],
    }


def _number(value: Any) -> Any:
    """A value for JSON, which has no infinity: that is the word of the IR, "inf"."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _sorted_types(types: frozenset[str]) -> list[str]:
    from irrun.spec.dtypes import ELEMENT_TYPES

    return [name for name in ELEMENT_TYPES if name in types]


def _opsets(op: Op) -> str:
    from irrun.spec.registry import registry

    held = registry().opsets(op)
    if not held:
        return ", ".join(op.extension_versions)
    if held == list(range(held[0], held[-1] + 1)):
        return f"opset{held[0]}" if len(held) == 1 else f"opset{held[0]} to opset{held[-1]}"
    return ", ".join(f"opset{number}" for number in held)


def _default(attr: Any) -> str:
    from irrun.spec.attributes import REQUIRED

    if attr.default is REQUIRED:
        return "required"
    default = attr.default
    if isinstance(default, tuple):
        return f"default {','.join(map(str, default)) or 'empty'}"
    return f"default {str(default).lower() if isinstance(default, bool) else default}"


def _range(attr: Any) -> str:
    from irrun.spec.attributes import NO_NAN

    low = "" if attr.least is None else ", not nan" if attr.least == NO_NAN else f", {attr.least} or more"
    return low + ("" if attr.most is None else f", {attr.most} or less")
