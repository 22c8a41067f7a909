/** Sends a chat in the upstream's dialect, and once more without the fields that the upstream refuses, before anything was delivered. */
import { type ChatDialect, inDialect, withStated } from "../../formats/openai-chat/dialect.js";
import { remediable, withRefused } from "../../formats/openai-chat/refused-fields.js";
import { isRecord } from "../../lib/json.js";
import { withFields } from "../../lib/own-values.js";
import { boundedBody, type ChatCall } from "../provider.js";
import { refusalIn, type UpstreamFields } from "./learned-fields.js";

type Fields = Readonly<Record<string, unknown>>;

export interface ChatRequest {
  readonly fields: Fields;
  readonly warnings: readonly string[];
}

/** Writes a call in the upstream's format and dialect. */
export type WriteRequest = (call: ChatCall, dialect: ChatDialect, isStreamed: boolean) => ChatRequest;

export interface SentChat<Answer> {
  readonly answer: Answer;
  /** One sentence for each field of the caller that the upstream did not get. */
  readonly warnings: readonly string[];
}

const NO_WARNINGS: readonly string[] = [];

export class ChatRequests {
  /** Dialects of models, by the operator's statements. */
  private readonly stated = new WeakMap<object, ChatDialect>();

  constructor(
    /** Of the upstream. */
    private readonly dialect: ChatDialect,
    private readonly learned: UpstreamFields,
    private readonly write: WriteRequest = toRequest,
  ) {}

  /** `ask` sends the fields; it rejects with a ProviderError. */
  async send<Answer>(call: ChatCall, isStreamed: boolean, ask: (fields: Fields) => Promise<Answer>): Promise<SentChat<Answer>> {
    const dialect = this.learned.dialectOf(call.upstreamModel, this.dialectFor(call));
    const { fields, warnings } = this.write(call, dialect, isStreamed);
    try {
      return { answer: await ask(fields), warnings };
    } catch (error) {
      const refused = remediable(refusalIn(error), fields);
      if (refused.length === 0 || call.signal.aborted) throw error;
      const other = this.write(call, withRefused(dialect, refused), isStreamed);
      const answer = await this.learned.askAgain(call.upstreamModel, refused, () => ask(other.fields));
      return { answer, warnings: other.warnings };
    }
  }

  private dialectFor({ dialect: stated }: ChatCall): ChatDialect {
    if (!stated) return this.dialect;
    const known = this.stated.get(stated);
    if (known) return known;
    const dialect = withStated(this.dialect, stated);
    this.stated.set(stated, dialect);
    return dialect;
  }
}

function toRequest(call: ChatCall, dialect: ChatDialect, isStreamed: boolean): ChatRequest {
  const { upstreamModel: model } = call;
  const bounded = boundedBody(call, dialect.outputCap);
  const written = inDialect(bounded, dialect);
  const body = written?.body ?? bounded;
  const fields = isStreamed
    ? withFields(body, { model, stream: true, stream_options: dialect.streamOptions ? withUsageReport(body.stream_options) : undefined })
    : withFields(body, { model, stream: false, stream_options: undefined });
  return { fields, warnings: written?.warnings ?? NO_WARNINGS };
}

/** Adds the stream options that request usage. */
function withUsageReport(options: unknown): Readonly<Record<string, unknown>> {
  return isRecord(options) ? withFields(options, USAGE_REPORT) : USAGE_REPORT;
}

const USAGE_REPORT = { include_usage: true } as const;
