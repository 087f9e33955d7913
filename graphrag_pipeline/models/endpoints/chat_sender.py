"""One conversation sent to a chat model: the cap of its reply, the window of the model, room for thoughts.

The cap is the most tokens of a reply: of the request, else of the parameters, else of the stage. It is never larger
than what the window leaves. A prompt that the window cannot hold is a `CallFailedError` with the tokens by which it is
too long (`n_excess`), so that the code which built it can send a shorter one. If only the cap was too large, the
conversation is sent once more with a smaller one. If the cap cut a reply before its first word, because the model
thinks first, the conversation is sent once more with room for thoughts.

`LearnedModel` is what is known about a model, for the process; the form is kept for later commands, too:

| known | from |
|---|---|
| the form in which JSON is asked for | refusals, now or in an earlier command (`reply_forms.py`) |
| the window | the settings, the list of models, refusals (`windows.py`) |
| whether it thinks before it writes | reasoning tokens in the usage, or nothing but thoughts in a reply that was cut |
| whether its thoughts begin without a mark | replies, now or in an earlier command (`thoughts.py`) |
| the longest reply | the usage |
| how many requests it answers at once | latencies, refusals and time-outs (`limits.py`) |
| whether it cuts prompts without an error | a usage that counts far fewer tokens than were sent |

Keep out: storage, forms of structured outputs, and what a reply means (`openai_client.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from graphrag_pipeline.models.accounting import Caller
from graphrag_pipeline.models.cache import KnownFacts
from graphrag_pipeline.models.endpoints.endpoint import Endpoint, RejectedError, Sent
from graphrag_pipeline.models.endpoints.escapes import UnescapedPieces, unescape
from graphrag_pipeline.models.endpoints.limits import AdaptiveLimit
from graphrag_pipeline.models.endpoints.places import ModelSettings
from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.models.endpoints.replies import Completion, TokenUsage, estimate_tokens, read_completion
from graphrag_pipeline.models.endpoints.reply_forms import ReplyForms
from graphrag_pipeline.models.endpoints.streaming import OnToken, read_silently
from graphrag_pipeline.models.endpoints.windows import (
    MARGIN,
    READ,
    ModelWindow,
    PromptSize,
    choose_listed,
    count_prompt,
    least_reply,
    read_model_windows,
)
from graphrag_pipeline.models.ports import CallFailedError, Message, sendable
from graphrag_pipeline.settings.models import ChatModelSettings

_LOG = logging.getLogger(__name__)
_PATH = "/chat/completions"
_UNMARKED = "unmarked"
_UNNAMED = 0.75  # of a refused prompt: the window that is assumed if the endpoint does not name it

COUNTED_SHARE = 0.6
"""Share of the tokens of a prompt that an endpoint must count; models count 0.9 to 1.15 of ours."""
LEAST_JUDGED = 1000
"""Tokens of a prompt from which its count is judged: servers cut at 2,048 tokens or more."""
EXPECTED_COMPLETION = 1000
"""Tokens that rate limits expect of a reply until a longer one arrives."""
THINKING_TOKENS = 16_000
"""Tokens that a model which thinks may take for it, besides those of its reply."""
SHORTER_PROMPTS = {
    "extraction": ", or lower text_units.size",
    "descriptions": ", or lower descriptions.max_input_tokens",
    "reports": ", or lower reports.max_input_tokens",
    "rating": ", or set rating.rated_text: summary",
    "answers": ", or lower max_context_tokens in the section of the method, such as local_search",
    "evaluation": ", or lower evaluation.max_context_tokens",
}
"""What shortens the prompts of a section, as a part of a message; the prompts of `resolution` cannot be shortened."""


@dataclass
class LearnedModel:
    """State of one model at one address.

    Attributes:
        thinks: whether it thinks before it writes, so that a cap must leave room for that.
        begins_unmarked: whether its texts begin with thoughts that no mark opens, so that no piece of a text can be
            passed on before its end; None until a reply in free text shows it.
        is_cutting: whether the endpoint seems to cut prompts without an error.
        streams: whether it has not refused a stream.
        limits: of concurrent requests, by endpoint and key, and what the settings of a section allow: the most of them,
            and the time-out.
    """

    forms: ReplyForms = field(default_factory=ReplyForms)
    window: ModelWindow = field(default_factory=lambda: ModelWindow(None))
    longest_completion: int = EXPECTED_COMPLETION
    thinks: bool = False
    begins_unmarked: bool | None = None
    keep_unmarked: Callable[[bool], object] = lambda is_unmarked: None
    is_cutting: bool = False
    streams: bool = True
    limits: dict[tuple[str, str, int, float], AdaptiveLimit] = field(default_factory=dict)

    @classmethod
    def of_settings(cls, settings: ChatModelSettings, known_forms: KnownFacts | None = None) -> LearnedModel:
        """Return what the settings say, and the form of JSON that an earlier command found."""
        place = (settings.base_url, settings.model)
        kept = known_forms.read(*place) if known_forms else None
        keep = (lambda form: known_forms.write(*place, fact=form)) if known_forms else None
        forms, window = ReplyForms(settings.structured_output, kept, keep), ModelWindow(settings.context_window)
        learned = cls(forms, window)
        if known_forms is not None:
            found = known_forms.read(*place, "thoughts")
            learned.begins_unmarked = None if found is None else found == _UNMARKED
            learned.keep_unmarked = lambda is_unmarked: known_forms.write(
                *place, "thoughts", fact=_UNMARKED if is_unmarked else "none"
            )
        return learned

    def limit_for(self, settings: ModelSettings) -> AdaptiveLimit:
        """Return the limit that all sections with such settings share, so that a stage begins where another ended."""
        allowed = settings.max_concurrency, settings.timeout_s
        place = settings.base_url, settings.api_key_env, *allowed
        return self.limits.setdefault(place, AdaptiveLimit(*allowed))

    def with_thoughts(self, cap: int | None) -> int | None:
        """Return the cap of a reply with its thoughts."""
        return cap + THINKING_TOKENS if cap is not None and self.thinks else cap

    def note_beginning(self, is_unmarked: bool, is_free: bool) -> None:
        """Keep, for later commands, too, whether texts of the model begin with thoughts that no mark opens.

        Args:
            is_free: whether no form of JSON was asked for, which keeps a model from thinking aloud.
        """
        if (is_unmarked and not self.begins_unmarked) or (is_free and self.begins_unmarked is None):
            self.begins_unmarked = is_unmarked
            self.keep_unmarked(is_unmarked)

    def note_thoughts(self, n_reasoning: int, is_only_thoughts: bool) -> bool:
        """Note a reply that shows thoughts; return whether it is the first one.

        Args:
            n_reasoning: tokens of thoughts that the usage reports.
            is_only_thoughts: whether the cap cut the reply before any text.
        """
        if self.thinks or not (is_only_thoughts or n_reasoning > 0):
            return False
        self.thinks = True
        return True


class ChatSender:
    """Sends conversations to one chat model.

    Args:
        section: of the settings, for messages.
        has_ceiling: whether a budget counts on the cap.
    """

    def __init__(
        self, section: str, settings: ChatModelSettings, endpoint: Endpoint, learned: LearnedModel, has_ceiling: bool
    ) -> None:
        self._section = section
        self._settings = settings
        self._endpoint = endpoint
        self._learned = learned
        self._has_ceiling = has_ceiling

    async def send(
        self,
        messages: Sequence[Message],
        more: Mapping[str, Any],
        cap: int | None,
        key: str,
        caller: Caller,
        on_token: OnToken | None = None,
    ) -> Sent[Completion]:
        """Send a conversation.

        Args:
            more: other fields of the body.
            cap: most tokens of the reply; None means no cap.

        Raises:
            RejectedError: the endpoint rejects the request for another reason than its length.
            CallFailedError: all allowed attempts failed, or the prompt is too long (`n_excess`).
            PipelineError: the endpoint cannot be used, or the budget is spent.
        """
        turns: list[Message] = [{"role": turn["role"], "content": sendable(turn["content"])} for turn in messages]
        await self._read_window()
        size = PromptSize(count_prompt(turns) if self._learned.window.tokens else 0, cap)
        if self._learned.window.refuses(size):
            self._raise_too_long(size, key)
        try:
            sent = await self._post(turns, more, size, key, caller, on_token)
        except RejectedError as error:
            if not error.problem.is_too_long:
                raise
            smaller = self._learn(error.problem, PromptSize(count_prompt(turns), cap), key)
            sent = await self._post(turns, more, smaller, key, caller, on_token)
        if self._learned.note_thoughts(sent.n_reasoning, sent.value.is_cut and not sent.value.text.strip()):
            _LOG.info("%s thinks before it writes: its replies get more tokens from now on", self._settings.model)
            if sent.value.is_cut and cap is not None:
                return await self._post(turns, more, size, key, caller, on_token)
        return sent

    async def _post(
        self,
        turns: Sequence[Message],
        more: Mapping[str, Any],
        size: PromptSize,
        key: str,
        caller: Caller,
        on_token: OnToken | None,
    ) -> Sent[Completion]:
        cap = self._learned.window.fit_cap(replace(size, cap=self._learned.with_thoughts(size.cap)))
        longest = self._learned.longest_completion
        n_reply = longest if cap is None else cap if self._has_ceiling else min(cap, longest)
        expected = TokenUsage(sum(estimate_tokens(turn["content"]) for turn in turns), n_reply)
        body = {"messages": list(turns), **more}
        if on_token and self._learned.begins_unmarked is not False:  # the caller passes on the reply at its end
            on_token = read_silently
        prompt = "\n".join(turn["content"] for turn in turns)
        pieces = UnescapedPieces(on_token, prompt) if on_token not in (None, read_silently) else None
        sent = await self._post_watched(body, key, expected, caller, pieces.add if pieces else on_token, cap)
        if pieces:
            pieces.finish()
        sent = replace(sent, value=replace(sent.value, text=unescape(sent.value.text, prompt)))
        self._learned.note_beginning(sent.value.begins_unmarked, not more and bool(sent.value.text.strip()))
        if sent.usage.prompt_tokens != expected.prompt_tokens:  # it is the endpoint's count, not the estimate
            self._learned.window.note_count(size.n_tokens, sent.usage.prompt_tokens)
            if sent.value.is_cut and self._learned.window.has_cut(size, sent.usage):
                self._raise_too_long(size, key, n_counted=sent.usage.prompt_tokens)
        self._note_silent_cut(turns, sent.usage.prompt_tokens, expected.prompt_tokens)
        self._learned.longest_completion = max(longest, sent.usage.completion_tokens)
        return sent

    async def _post_watched(
        self,
        body: Mapping[str, Any],
        key: str,
        expected: TokenUsage,
        caller: Caller,
        on_token: OnToken | None,
        cap: int | None,
    ) -> Sent[Completion]:
        """Send a request; as a stream, which can be stopped in a loop, if the settings say so and it is not refused."""
        if on_token is None and self._settings.stop_loops and self._learned.streams:
            try:
                return await self._endpoint.post(
                    _PATH, body, key, expected, read_completion, caller, read_silently, cap
                )
            except RejectedError as error:
                if not error.problem.is_about_stream:
                    raise
                self._learned.streams = False
                where = f"{self._settings.model} at {self._endpoint.host}"
                _LOG.warning("%s refuses streams (%s): a reply in a loop is read to its cap", where, error.reason)
        return await self._endpoint.post(_PATH, body, key, expected, read_completion, caller, on_token, cap)

    def _note_silent_cut(self, turns: Sequence[Message], n_counted: int, n_expected: int) -> None:
        """Warn once if the endpoint counts far fewer tokens than it was sent."""
        if self._learned.is_cutting or not 0 < n_counted < COUNTED_SHARE * n_expected:
            return
        n_sent = count_prompt(turns)
        if n_sent < LEAST_JUDGED or n_counted >= COUNTED_SHARE * n_sent:
            return
        self._learned.is_cutting = True
        _LOG.warning(
            "%s at %s counted %d tokens in a prompt of about %d: the server seems to cut prompts to its context "
            "without an error, as Ollama does. Start it with a larger context (Ollama: OLLAMA_CONTEXT_LENGTH=16384) or "
            "set chat_model.context_window to the context that it has, so that prompts are made to fit",
            self._settings.model, self._endpoint.host, n_counted, n_sent,
        )  # fmt: skip

    async def _read_window(self) -> None:
        window = self._learned.window
        if not window.is_to_read:
            return
        windows = read_model_windows(await self._endpoint.list_models())
        listed = choose_listed(self._settings.model, windows)
        served = windows[listed] if listed is not None else None
        window.set_read(served)
        if served is None:
            _LOG.warning(
                "%s does not tell the window of %s; set chat_model.context_window to a number instead of %r",
                self._endpoint.host, self._settings.model, READ,
            )  # fmt: skip

    def _learn(self, problem: Problem, size: PromptSize, key: str) -> PromptSize:
        """Note the window of a refusal; return the size with a cap that fits, or raise if the prompt does not."""
        window = problem.window or int(_UNNAMED * size.n_tokens)
        if problem.window and self._learned.window.learn(window):
            _LOG.warning(
                "%s at %s has a window of %d tokens: prompts and replies are made to fit. Set "
                "chat_model.context_window: %d to save refused requests",
                self._settings.model, self._endpoint.host, window, window,
            )  # fmt: skip
        self._learned.window.note_count(size.n_tokens, problem.n_prompt)
        left = window - (problem.n_prompt or int(MARGIN * size.n_tokens))
        if left >= least_reply(window, size.cap) and (size.cap is None or size.cap > left):
            return replace(size, cap=left)
        self._raise_too_long(size, key, problem)

    def _raise_too_long(
        self, size: PromptSize, key: str, problem: Problem | None = None, n_counted: int | None = None
    ) -> NoReturn:
        n_counted = problem.n_prompt if problem else n_counted
        window = (problem.window if problem else self._learned.window.tokens) or int(_UNNAMED * size.n_tokens)
        said = f" ({problem})" if problem else ""
        raise CallFailedError(
            f"the prompt of about {size.n_tokens:,} tokens and its reply do not fit the window of "
            f"{self._settings.model}, {window:,} tokens{said}; use a model with a larger window"
            f"{SHORTER_PROMPTS.get(self._section, '')}",
            key,
            n_excess=size.excess(window, n_counted),
        )
