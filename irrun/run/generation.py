"""Generation: a language model run token by token, the most likely one each time.

What its inputs are made of is in `irrun.run.decoder`.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.diagnostics import Diagnostic, ExecutionError, InputError
from irrun.run.decoder import read_decoder
from irrun.run.session import MAX_TOKENS
from irrun.spec.op import Array

if TYPE_CHECKING:
    from irrun.run.executor import GraphExecutor
    from irrun.run.profile import Profile
    from irrun.run.session import Session

_MAX_ID = 1 << 31
"""Ids are below this where the model does not tell how large its vocabulary is."""


def generate(
    executor: GraphExecutor,
    session: Session,
    prompts: Sequence[Iterable[int]],
    *,
    max_tokens: int = MAX_TOKENS,
    eos_ids: Collection[int] = (),
    inputs: Mapping[str, Any] | None = None,
    profile: Profile | None = None,
) -> Iterator[list[int]]:
    """The next token of each prompt, again and again, at most `max_tokens` times: the first of the largest logits.

    Prompts are token ids; shorter ones are padded on the left. A row that has come to one of `eos_ids` repeats it until
    all have. `inputs` are arrays that the model takes besides in every step, such as `encoder_hidden_states`.
    The session's state is reset before, and is afterwards what the last step has left.
    Raises IRError (E605) where the model is no decoder, InputError where prompts or inputs do not fit, ExecutionError
    where a step fails, RuntimeError where the session has done something else between two steps.
    """
    given = dict(inputs or {})
    decoder = read_decoder(executor, given)
    ids, mask = _padded([_checked(prompt, decoder.vocabulary) for prompt in prompts])
    if max_tokens < 1:
        raise InputError(f"max_tokens is {max_tokens}, but must be 1 or more")
    needed = mask.shape[1] + max_tokens - 1
    if decoder.positions is not None and needed > decoder.positions:
        tokens = f"{mask.shape[1]} token{'s' * (mask.shape[1] != 1)}"
        raise InputError(
            f"{tokens} of the prompt and {max_tokens} more take {needed} positions, but the model has "
            f"{decoder.positions}"
        )
    if not mask.all() and "attention_mask" not in decoder.made:
        raise InputError("the prompts differ in length, but the model has no `attention_mask` to tell padding by")
    ended = frozenset(operator.index(token) for token in eos_ids)
    for token in sorted(ended):
        if (bounds := _bounds_beside(token, decoder.vocabulary)) is not None:
            raise InputError(f"the token {token} never ends a row: it is outside {bounds}")

    def steps(ids: Array, mask: Array) -> Iterator[list[int]]:
        session.reset_state()
        caches, latest = decoder.empty_caches(len(ids), executor.max_memory), list[int]()
        turn = session.turn
        for _ in range(max_tokens):
            if executor.stateful and session.turn != turn:  # others go on from caches of their own
                raise RuntimeError(
                    "the session has run or been reset since the last token, so that what the model has kept is of "
                    "something else: give each generation a session of its own"
                )
            results = session.run({**given, **caches, **decoder.step(ids, mask)}, profile=profile)
            turn = session.turn
            chosen = _most_likely(decoder.last_logits(results, len(ids), executor.model), executor, mask.shape[1])
            latest = [old if old in ended else new for old, new in zip(latest or chosen, chosen, strict=True)]
            yield latest
            if ended.issuperset(latest):
                return
            caches = {name: results[output] for name, output in decoder.caches.items()}
            ids = np.array(latest)[:, None]
            mask = np.concatenate([mask, np.ones_like(ids)], 1)

    return steps(ids, mask)


def _most_likely(logits: Array, executor: GraphExecutor, length: int) -> list[int]:
    """The token of each row that has the largest of `logits`, behind `length` tokens. Raises ExecutionError."""
    unclear = np.isnan(logits)
    if unclear.any():
        row, token = map(int, np.argwhere(unclear)[0])
        message = f"the logit of token {token} is NaN after {length} tokens, in row {row}"
        help = "run the prompt with `irrun execute` and an observer, or --engine check, to see where NaN comes from"
        raise ExecutionError([Diagnostic("E606", message, help=help, file=str(executor.model.path))])
    chosen: list[int] = logits.argmax(-1).tolist()
    return chosen


def _checked(prompt: Iterable[int], vocabulary: int | None) -> list[int]:
    """The ids of a prompt. Raises InputError."""
    ids = []
    for position, token in enumerate(prompt):
        try:
            number = operator.index(token)
        except TypeError:
            raise InputError(f"token {position} of the prompt is {token!r}, which is no integer") from None
        if (bounds := _bounds_beside(number, vocabulary)) is not None:
            raise InputError(f"token {position} of the prompt is {number}, outside {bounds}")
        ids.append(number)
    if not ids:
        raise InputError("the prompt is empty: there is nothing to go on from")
    return ids


def _bounds_beside(number: int, vocabulary: int | None) -> str | None:
    """What ids lie in, where a number does not."""
    if 0 <= number < (vocabulary or _MAX_ID):
        return None
    return f"[0, {_MAX_ID})" if vocabulary is None else f"[0, {vocabulary}), the vocabulary of the model"


def _padded(rows: list[list[int]]) -> tuple[Array, Array]:
    """The rows as one array [batch, length], shorter ones behind zeros, and where they are no padding."""
    if not rows:
        raise InputError("there is no prompt")
    length = max(map(len, rows))
    ids = np.array([[0] * (length - len(row)) + row for row in rows], np.int64)
    mask = np.array([[0] * (length - len(row)) + [1] * len(row) for row in rows], np.int64)
    return ids, mask
