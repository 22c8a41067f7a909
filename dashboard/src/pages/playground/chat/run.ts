/** Streaming answer. It notifies its view at most once per animation frame, however many pieces arrive. */
import type { CombinedError } from "urql";
import { streamGeneration } from "../../../client/generate.js";
import { type ChatCompletionInput, PlaygroundChatDocument, type PlaygroundChatSubscription } from "../../../client/generated/graphql.js";
import { Listeners } from "../../../client/listeners.js";
import { GrowingText } from "./blocks.js";
import { type Answer, emptyAnswer, type ToolCall } from "./conversation.js";

export interface RunView {
  readonly blocks: readonly string[];
  readonly tail: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** Characters received, including reasoning and tool calls. */
  readonly charactersOut: number;
}

/** Background tabs have no animation frames. */
const BACKGROUND_MS = 250;

export class Run {
  readonly #text = new GrowingText();
  readonly #calls: ToolCall[] = [];
  readonly #listeners = new Listeners();
  #answer: Answer;
  #reasoning = "";
  #view: RunView = { blocks: [], tail: "", reasoning: "", toolCalls: [], charactersOut: 0 };
  #isDrawn = true;
  #leave: () => void = () => {};

  constructor(
    modelId: string,
    private readonly onEnd: (answer: Answer, error: CombinedError | undefined) => void,
  ) {
    this.#answer = emptyAnswer(modelId);
  }

  start(input: ChatCompletionInput): void {
    this.#leave = streamGeneration(
      PlaygroundChatDocument,
      { input },
      {
        onData: ({ chatCompletion }) => this.#take(chatCompletion),
        onEnd: (error) => this.#finish(error ? "failed" : "done", error),
      },
    );
  }

  /** Stops the generation. The part generated so far is charged. */
  stop(): void {
    this.#leave();
    this.#finish("stopped");
  }

  /** Stops without calling `onEnd` and returns the partial answer. */
  abandon(): Answer {
    this.#leave();
    return this.#whole("stopped");
  }

  readonly subscribe = this.#listeners.add;

  readonly view = (): RunView => this.#view;

  #take(event: PlaygroundChatSubscription["chatCompletion"]): void {
    const { generationId } = event;
    if ("receipt" in event) {
      const { receipt } = event;
      this.#answer = { ...this.#answer, generationId, receipt, cost: receipt.cost };
      return;
    }
    const { content, refusal, reasoning, toolCalls, finishReason } = event;
    if (this.#answer.generationId === null) this.#answer = { ...this.#answer, generationId };
    if (finishReason !== null) this.#answer = { ...this.#answer, finishReason };
    if (reasoning !== null) this.#reasoning += reasoning;
    this.#text.append(content ?? refusal ?? "");
    for (const { index, id, function: called } of toolCalls ?? []) {
      const at = index ?? this.#calls.length;
      const before = this.#calls[at] ?? { id: "", name: "", arguments: "" };
      this.#calls[at] = {
        id: id ?? before.id,
        name: before.name + (called?.name ?? ""),
        arguments: before.arguments + (called?.arguments ?? ""),
      };
    }
    this.#draw();
  }

  #draw(): void {
    if (!this.#isDrawn) return;
    this.#isDrawn = false;
    const draw = () => {
      this.#isDrawn = true;
      this.#view = {
        blocks: this.#text.blocks,
        tail: this.#text.tail,
        reasoning: this.#reasoning,
        toolCalls: this.#calls.length === this.#view.toolCalls.length && this.#calls.length === 0 ? this.#view.toolCalls : [...this.#calls],
        charactersOut: this.#text.length + this.#reasoning.length + this.#calls.reduce((sum, call) => sum + call.arguments.length, 0),
      };
      this.#listeners.notify();
    };
    if (document.hidden) setTimeout(draw, BACKGROUND_MS);
    else requestAnimationFrame(draw);
  }

  #finish(state: Answer["state"], error?: CombinedError): void {
    this.onEnd(this.#whole(state, error), error);
  }

  #whole(state: Answer["state"], error?: CombinedError): Answer {
    const failure = error ? (error.graphQLErrors[0]?.message ?? "The connection to the gateway was lost.") : null;
    return { ...this.#answer, text: this.#text.text, reasoning: this.#reasoning, toolCalls: this.#calls.filter(Boolean), state, failure };
  }
}
