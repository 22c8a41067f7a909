/**
 * References to output items of stored responses (`item_reference`), which clients send instead of the items. The id of such an item names
 * its response.
 */
import type { KeyCaller, SessionCaller } from "../../../context.js";
import { AppError, wrongField } from "../../../errors.js";
import { uuidOfItem } from "../../../formats/openai-responses/answer.js";
import type { ResponseInput, ResponseInputItem } from "../../../formats/openai-responses/request.js";
import type { StoredItem } from "../../../formats/openai-responses/stored-items.js";
import { JSON_BODY_BYTES_MAX } from "../../../limits.js";
import type { Database } from "../../../store/database.js";
import { parseInput } from "../../requests/input.js";
import { responseInput } from "../chat/responses.js";
import { REFERENCED_RESPONSES_MAX } from "./limits.js";
import { readerFor } from "./owners.js";
import type { StoredResponseRows } from "./rows.js";

const REFERENCE = "item_reference";

export interface FoundReferences {
  /** Of the stored responses, as JSON. */
  readonly bytes: number;
  /** The input with the items themselves. Rejects with BAD_REQUEST for an unknown one. */
  readonly resolve: () => Promise<ResponseInput>;
}

/** Null: the input has no references. Rejects with BAD_REQUEST for a response that is not kept or cannot be read. */
export async function findReferences(
  database: Database,
  rows: StoredResponseRows,
  caller: KeyCaller | SessionCaller,
  request: ResponseInput,
): Promise<FoundReferences | null> {
  const { input } = request;
  if (typeof input === "string") return null;
  const places = input.flatMap((item, index) => (isReference(item) ? [index] : []));
  if (places.length === 0) return null;
  const uuids = new Map(places.map((index) => [index, uuidOfItem(idOf(input[index]))]));
  const asked = [...new Set([...uuids.values()].filter((uuid) => uuid !== null))];
  if (asked.length > REFERENCED_RESPONSES_MAX)
    throw wrongField("input", `refers to items of ${asked.length} responses, of at most ${REFERENCED_RESPONSES_MAX}`);
  const metas = await rows.findMetas(asked);
  const mayRead = readerFor(database, caller);
  const readable = new Set<string>();
  let bytes = 0;
  for (const meta of metas) {
    if (!(await mayRead(meta))) continue;
    readable.add(meta.id);
    bytes += meta.sizeBytes;
  }
  if (bytes > JSON_BODY_BYTES_MAX)
    throw new AppError(
      "PAYLOAD_TOO_LARGE",
      `input: the items referred to have more than ${JSON_BODY_BYTES_MAX} bytes with their responses.`,
      {
        param: "input",
      },
    );
  const resolve = async () => {
    const answers = await rows.readAnswers(caller.accountId, [...readable]);
    const items = input.map((item, index): unknown => {
      const uuid = uuids.get(index);
      if (uuid === undefined) return item.type === null ? item.item : item;
      const id = idOf(item);
      const found = uuid === null ? undefined : answers.get(uuid)?.output.find((each) => each.id === id);
      if (found === undefined) throw wrongField(`input.${index}.id`, "names no item of a stored response: send the item itself");
      return found as unknown as StoredItem;
    });
    return parseInput(responseInput, { ...request, input: items });
  };
  return { bytes, resolve };
}

function isReference(item: ResponseInputItem): boolean {
  return item.type === null && item.foreignType === REFERENCE;
}

function idOf(item: ResponseInputItem | undefined): string {
  const id = item !== undefined && item.type === null ? item.item.id : undefined;
  return typeof id === "string" ? id : "";
}
