/**
 * Repairs a history for upstreams that demand each call's output right behind it: calls of a turn together, their outputs in the same order,
 * then what stood between. A missing output is made, an output without a call is left out; each change has a warning.
 */
import { append } from "../../lib/collections.js";
import { isRecord } from "../../lib/json.js";

type Message = Readonly<Record<string, unknown>>;

export interface RepairOptions {
  /** The request's field with the history, for warnings. */
  readonly field: string;
  /** A tool's message holds text only: other parts of it follow in a message of the user. */
  readonly showsMediaApart: boolean;
}

export interface RepairedHistory {
  /** The same list when nothing had to change. */
  readonly messages: readonly Message[];
  readonly warnings: readonly string[];
}

/** Said to the model for a call whose output is missing. */
const NO_OUTPUT = "No output: the call was interrupted.";
const SHOWN_BELOW = "The output follows in the next message.";

interface Call {
  readonly call: unknown;
  readonly id: unknown;
  output: Message | null;
  /** It belongs to the turn that is being read. */
  isInTurn: boolean;
}

export function repairHistory(messages: readonly Message[], options: RepairOptions): RepairedHistory {
  if (!messages.some((message) => message.role === "tool" || callsOf(message).length > 0)) return { messages, warnings: [] };
  const repair = new Repair(options);
  repair.match(messages);
  for (const message of messages) repair.add(message);
  return repair.end(messages);
}

function callsOf({ role, tool_calls: calls }: Message): readonly unknown[] {
  return role === "assistant" && Array.isArray(calls) ? calls : [];
}

class Repair {
  private readonly repaired: Message[] = [];
  /** The message of the history that each of them stems from; null for one that was made. */
  private readonly sources: (Message | null)[] = [];
  private readonly calls = new Map<unknown, Call>();
  private readonly callOf = new Map<Message, Call>();
  /** The turn's message with all of its calls, and the messages behind it. */
  private turn: { readonly message: Message; readonly calls: Call[]; readonly ids: Set<unknown>; isMerged: boolean } | null = null;
  private between: { readonly message: Message; readonly source: Message }[] = [];
  private missing = 0;
  private orphans = 0;
  private hasMedia = false;

  constructor(private readonly options: RepairOptions) {}

  /** Finds each call's output, wherever it is behind the call. Ids may repeat in later turns. */
  match(messages: readonly Message[]): void {
    const open = new Map<unknown, Call[]>();
    for (const message of messages) {
      const own = new Map<unknown, Call[]>();
      for (const call of callsOf(message)) {
        const id = isRecord(call) ? call.id : undefined;
        const found: Call = { call, id, output: null, isInTurn: false };
        this.calls.set(call, found);
        // Two calls of one message may have one id; their outputs come in their order.
        const alike = own.get(id);
        if (alike) alike.push(found);
        else own.set(id, [found]);
      }
      for (const [id, calls] of own) open.set(id, calls);
      if (message.role !== "tool") continue;
      const call = open.get(message.tool_call_id)?.shift();
      if (!call) continue;
      call.output = message;
      this.callOf.set(message, call);
    }
  }

  add(message: Message): void {
    const { role } = message;
    if (role === "tool") {
      const call = this.callOf.get(message);
      if (!call) this.orphans += 1;
      // The outputs of a turn end it: calls behind them belong to the next.
      else if (call.isInTurn) this.flush();
    } else if (role === "assistant") this.addAssistant(message);
    else {
      this.flush();
      this.push(message, message);
    }
  }

  end(original: readonly Message[]): RepairedHistory {
    this.flush();
    const { repaired } = this;
    const isSame = repaired.length === original.length && repaired.every((message, index) => message === original[index]);
    if (isSame) return { messages: original, warnings: [] };
    return { messages: repaired, warnings: this.warnings(original) };
  }

  private addAssistant(message: Message): void {
    const calls = callsOf(message).map((call) => this.calls.get(call) as Call);
    // An id stands for one call of a turn.
    if (calls.some(({ id }) => this.turn?.ids.has(id))) this.flush();
    if (this.turn === null) {
      if (calls.length > 0) this.begin(message, calls);
      else this.push(message, message);
      return;
    }
    if (calls.length === 0) {
      this.between.push({ message, source: message });
      return;
    }
    this.take(calls, this.turn.ids);
    append(this.turn.calls, calls);
    this.turn.isMerged = true;
    const { tool_calls: _, ...rest } = message;
    if (isSaid(rest)) this.between.push({ message: rest, source: message });
  }

  private begin(message: Message, calls: Call[]): void {
    const ids = new Set<unknown>();
    this.take(calls, ids);
    this.turn = { message, calls, ids, isMerged: false };
  }

  private take(calls: readonly Call[], ids: Set<unknown>): void {
    for (const call of calls) {
      call.isInTurn = true;
      ids.add(call.id);
    }
  }

  private push(message: Message, source: Message | null): void {
    this.repaired.push(message);
    this.sources.push(source);
  }

  private flush(): void {
    const { turn, between } = this;
    if (turn === null) return;
    this.turn = null;
    this.between = [];
    this.push(turn.isMerged ? { ...turn.message, tool_calls: turn.calls.map(({ call }) => call) } : turn.message, turn.message);
    const media: unknown[] = [];
    for (const call of turn.calls) {
      call.isInTurn = false;
      this.push(this.outputOf(call, media), call.output);
    }
    if (media.length > 0) this.push({ role: "user", content: media }, null);
    for (const { message, source } of between) this.push(message, source);
  }

  /** `media` receives the parts that a tool's message cannot hold. */
  private outputOf({ call, id, output }: Call, media: unknown[]): Message {
    if (output === null) {
      this.missing += 1;
      return { role: "tool", tool_call_id: id, content: NO_OUTPUT };
    }
    const { content } = output;
    if (!this.options.showsMediaApart || !Array.isArray(content) || content.every(isText)) return output;
    this.hasMedia = true;
    const texts = content.filter(isText);
    media.push({ type: "text", text: `Output of ${nameOf(call)}:` });
    append(
      media,
      content.filter((part) => !isText(part)),
    );
    return { ...output, content: texts.length > 0 ? texts : SHOWN_BELOW };
  }

  private warnings(original: readonly Message[]): string[] {
    const { field } = this.options;
    const warnings: string[] = [];
    if (this.missing > 0)
      warnings.push(`${field}: ${this.missing} of the calls had no output; the model was told that they were interrupted.`);
    if (this.orphans > 0) warnings.push(`${field}: ${this.orphans} of the outputs belong to no call before them, and were left out.`);
    if (this.hasMedia) warnings.push(`${field}: pictures and files of tools' outputs are given in a message of the user behind them.`);
    if (this.hasMoved(original)) warnings.push(`${field}: outputs were moved right behind their calls.`);
    return warnings;
  }

  private hasMoved(original: readonly Message[]): boolean {
    const order = this.sources.filter((source) => source !== null);
    const left = new Set(order);
    const before = original.filter((message) => left.has(message));
    return order.some((message, index) => message !== before[index]);
  }
}

function isText(part: unknown): boolean {
  return isRecord(part) && part.type === "text";
}

/** It holds more than the calls that were moved. */
function isSaid({ content, refusal, reasoning_content: thoughts, reasoning_details: details }: Message): boolean {
  const isFilled = (value: unknown) => (typeof value === "string" || Array.isArray(value)) && value.length > 0;
  return [content, refusal, thoughts, details].some(isFilled);
}

function nameOf(call: unknown): string {
  const { function: called, custom } = isRecord(call) ? call : {};
  const name = isRecord(called) ? called.name : isRecord(custom) ? custom.name : "";
  return typeof name === "string" && name !== "" ? name : "the tool";
}
