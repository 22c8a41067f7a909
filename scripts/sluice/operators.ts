/** Commands against an account: each is a mutation of the gateway, which writes the audit log. */
import { toCsvCell } from "../../src/lib/csv.js";
import { type Gateway, GatewayError } from "./gateway.js";
import { type Outcome, printable, toColumns } from "./present.js";

export async function suspend(gateway: Gateway, accountId: string, reason: string): Promise<Outcome> {
  const query = `mutation ($input: SuspendAccountInput!) { suspendAccount(input: $input) { account { id: restId handle suspendedAt suspensionReason } } }`;
  const { suspendAccount } = await gateway.ask<{ suspendAccount: Managed }>(query, { input: { accountId, reason } });
  const { account } = suspendAccount;
  return { answer: account, words: `Suspended ${printable(account.handle)}: its keys and sessions are refused with ACCOUNT_SUSPENDED.` };
}

export async function restore(gateway: Gateway, accountId: string, reason: string | null): Promise<Outcome> {
  const query = `mutation ($input: RestoreAccountInput!) { restoreAccount(input: $input) { account { id: restId handle suspendedAt } } }`;
  const { restoreAccount } = await gateway.ask<{ restoreAccount: Managed }>(query, { input: { accountId, reason } });
  const { account } = restoreAccount;
  return { answer: account, words: `Restored ${printable(account.handle)}: its keys and sessions are accepted again.` };
}

export async function endSessions(gateway: Gateway, accountId: string, reason: string | null): Promise<Outcome> {
  const query = `mutation ($input: EndSessionsInput!) { endSessions(input: $input) { ended account { id: restId handle } } }`;
  const { endSessions: answer } = await gateway.ask<{ endSessions: Managed & { ended: number } }>(query, { input: { accountId, reason } });
  return { answer, words: `Ended ${answer.ended} sessions of ${printable(answer.account.handle)}.` };
}

export async function makePasswordLink(gateway: Gateway, accountId: string): Promise<Outcome> {
  const query = `mutation ($input: CreatePasswordLinkInput!) { createPasswordLink(input: $input) { url expiresAt } }`;
  const { createPasswordLink: answer } = await gateway.ask<{ createPasswordLink: { url: string; expiresAt: string } }>(query, {
    input: { accountId },
  });
  const advice = `Pass it to the account's owner. It works once, until ${answer.expiresAt}.`;
  return { answer, words: answer.url, advice };
}

export async function revokeKey(gateway: Gateway, apiKeyId: string, reason: string | null): Promise<Outcome> {
  const query = `mutation ($input: RevokeAnyApiKeyInput!) { revokeAnyApiKey(input: $input) { account { id: restId handle } } }`;
  const { revokeAnyApiKey } = await gateway.ask<{ revokeAnyApiKey: Managed }>(query, { input: { apiKeyId, reason } });
  const words = `Revoked the key ${apiKeyId} of ${printable(revokeAnyApiKey.account.handle)}, and the keys that were made with it.`;
  return { answer: revokeAnyApiKey, words };
}

export interface Taking {
  readonly credits: string;
  readonly bucket: string;
  readonly note: string | null;
  readonly withdrawalId: string;
}

export async function takeCredits(gateway: Gateway, accountId: string, taking: Taking): Promise<Outcome> {
  const { credits, bucket, note, withdrawalId } = taking;
  const input = { accountId, bucket: bucket.toUpperCase(), credits, note, withdrawalId };
  const query = `mutation ($input: WithdrawCreditsInput!) { withdrawCredits(input: $input) { credits account { handle balance { available } } } }`;
  const answer = await gateway.ask<{ withdrawCredits: Withdrawn }>(query, { input }).catch((error: unknown) => {
    if (!(error instanceof GatewayError && error.isOutcomeUnknown)) throw error;
    const advice = `Whether the credits were taken is not known. With --withdrawal-id ${withdrawalId} they are taken once, however often.`;
    throw new GatewayError(`${error.message}\n${advice}`, true);
  });
  const { account, credits: taken } = answer.withdrawCredits;
  const words = `Took ${taken} credits from ${printable(account.handle)} (${bucket}); the balance is ${account.balance.available}. Withdrawal id: ${withdrawalId}`;
  return { answer: { ...answer.withdrawCredits, withdrawalId }, words };
}

interface Withdrawn {
  readonly credits: string;
  readonly account: { readonly handle: string; readonly balance: { readonly available: string } };
}

interface Managed {
  readonly account: { readonly id: string; readonly handle: string };
}

interface ShownKey {
  readonly id: string;
  readonly name: string;
  readonly start: string;
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
}

/** Of the gateway's own pages. */
const PAGE_SIZE_MAX = 100;
/** Keys of an account are at most 1,000. */
const KEYS_MAX = 1_000;

export async function listKeys(gateway: Gateway, accountId: string): Promise<Outcome> {
  const query = `query ($id: ID!, $first: Int, $after: String) { account(id: $id) {
    apiKeys(first: $first, after: $after) { nodes { id: restId name start createdAt lastUsedAt } pageInfo { hasNextPage endCursor } } } }`;
  const keys = await collect<ShownKey>(KEYS_MAX, async (first, after) => {
    const { account } = await gateway.ask<{ account: { apiKeys: Page<ShownKey> } }>(query, { id: accountId, first, after });
    return account.apiKeys;
  });
  const words = toColumns<ShownKey>(
    [
      ["ID", ({ id }) => id],
      ["KEY", ({ start }) => `${start}...`],
      ["NAME", ({ name }) => name],
      ["CREATED", ({ createdAt }) => createdAt.slice(0, 10)],
      ["LAST USED", ({ lastUsedAt }) => lastUsedAt ?? "-"],
    ],
    keys,
  );
  return { answer: keys, words: keys.length === 0 ? "The account has no keys." : words };
}

export interface AuditQuery {
  readonly accountId: string | null;
  readonly acts: readonly string[] | null;
  readonly from: string | null;
  readonly to: string | null;
  readonly limit: number;
}

interface AuditEntry {
  readonly id: string;
  readonly createdAt: string;
  readonly act: string;
  readonly actor: { readonly id: string; readonly handle: string } | null;
  readonly actorApiKeyId: string | null;
  readonly account: { readonly id: string; readonly handle: string } | null;
  readonly accountId: string | null;
  readonly objectId: string | null;
  readonly before: unknown;
  readonly after: unknown;
  readonly reason: string | null;
  readonly address: string | null;
  readonly requestId: string | null;
}

const COMMAND_LINE = "command line";

export async function listAudit(gateway: Gateway, query: AuditQuery): Promise<Outcome> {
  const entries = await readAudit(gateway, query);
  const words = toColumns<AuditEntry>(
    [
      ["WHEN", ({ createdAt }) => createdAt],
      ["ACT", ({ act }) => act],
      ["OPERATOR", ({ actor }) => actor?.handle ?? COMMAND_LINE],
      ["ACCOUNT", ({ account, accountId }) => account?.handle ?? accountId ?? "-"],
      ["OBJECT", ({ objectId }) => objectId ?? "-"],
      ["ADDRESS", ({ address }) => address ?? "-"],
      ["REASON", ({ reason }) => reason ?? "-"],
    ],
    entries,
  );
  return { answer: entries, words: entries.length === 0 ? "No act was found." : words };
}

export async function exportAudit(gateway: Gateway, query: AuditQuery): Promise<Outcome> {
  const entries = await readAudit(gateway, query);
  const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
  const words = toCsv<AuditEntry>(
    [
      ["id", ({ id }) => id],
      ["created_at", ({ createdAt }) => createdAt],
      ["act", ({ act }) => act],
      ["actor_account_id", ({ actor }) => actor?.id ?? null],
      ["actor_api_key_id", ({ actorApiKeyId }) => actorApiKeyId],
      ["account_id", ({ accountId }) => accountId],
      ["object_id", ({ objectId }) => objectId],
      ["before", ({ before }) => json(before)],
      ["after", ({ after }) => json(after)],
      ["reason", ({ reason }) => reason],
      ["address", ({ address }) => address],
      ["request_id", ({ requestId }) => requestId],
    ],
    entries,
  );
  return { answer: entries, words };
}

function readAudit(gateway: Gateway, { accountId, acts, from, to, limit }: AuditQuery): Promise<AuditEntry[]> {
  const query = `query ($first: Int, $after: String, $filter: AuditFilter) { auditLog(first: $first, after: $after, filter: $filter) {
    nodes { id: restId createdAt act actor { id: restId handle } actorApiKeyId account { id: restId handle } accountId objectId before after reason address requestId }
    pageInfo { hasNextPage endCursor } } }`;
  const filter = { ...(accountId !== null && { accountIds: [accountId] }), acts, from, to };
  return collect<AuditEntry>(limit, async (first, after) => {
    const { auditLog } = await gateway.ask<{ auditLog: Page<AuditEntry> }>(query, { first, after, filter });
    return auditLog;
  });
}

interface Page<Node> {
  readonly nodes: readonly Node[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

async function collect<Node>(limit: number, read: (first: number, after: string | null) => Promise<Page<Node>>): Promise<Node[]> {
  const all: Node[] = [];
  let after: string | null = null;
  while (all.length < limit) {
    const { nodes, pageInfo }: Page<Node> = await read(Math.min(limit - all.length, PAGE_SIZE_MAX), after);
    for (const node of nodes) all.push(node);
    if (!pageInfo.hasNextPage) break;
    after = pageInfo.endCursor;
  }
  return all;
}

function toCsv<Row>(columns: readonly (readonly [title: string, cell: (row: Row) => string | null])[], rows: readonly Row[]): string {
  const lines = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, cell]) => toCsvCell(cell(row))))];
  return lines.map((cells) => cells.join(",")).join("\r\n");
}
