/**
 * The faults of `npm run bench:faults` about leases: their owner dies, and accounts and budgets with leases grow, are
 * cut and are used up.
 */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { createApiKeyText } from "../src/lib/api-key-format.js";
import { formatNanocredits, parseNanocredits } from "../src/lib/money.js";
import { startFaultProxy } from "../test/support/fault-proxy.js";
import { type Sluice, startSluice, startUpstream } from "./contenders.js";
import { describe, examine, type FaultReport, type KillOptions, killWhatRuns } from "./fault-scenarios.js";
import { withDatabase } from "./support/books.js";
import type { Workload } from "./support/documents.js";
import { startPostgres } from "./support/postgres.js";
import { type Answer, RecordedLoad } from "./support/recorded-load.js";
import { format } from "./support/statistics.js";

/** Of each kind, whole answers and streams. */
const CALLERS = 12;
const PACE_MS = 5;
const WARM_MS = 1_500;
/** What the gateway has sent by then is committed, and it has not heard of it. */
const UNHEARD_MS = 300;
/** Longer than any wait for credits held by others. */
const QUIET_MS = 4_000;
const QUIET_MS_MAX = 180_000;
const LOOK_MS = 100;
/** A process that is not heard is dead after 30 s, and looked for every 10 s. */
const RECOVERED_MS_MAX = 90_000;
const WORKERS = 4;
const BUDGET_ROUNDS = 3;
const GRANT_EVERY_MS = 200;
/** Some hundred answers. */
const LITTLE = 0.02;
const MUCH = 1_000;
const LAST_CREDITS = "0.06";
/** Of several processes on one database. */
const ENCRYPTION_KEY = "one key for all that share a database";

interface LeaseOptions {
  readonly directory: string;
  /** Where PostgreSQL's binaries are; null: the embedded database. */
  readonly postgres: string | null;
}

/**
 * A process is killed again and again when the database has committed its settlements and it has not heard of that, and the last time
 * for good; another, on the same account, goes on.
 */
export async function killLeaseOwner({ directory: parent, postgres: binaries, kills }: KillOptions): Promise<FaultReport> {
  if (binaries === null) throw new Error("Two processes need PostgreSQL.");
  const directory = mkdtempSync(join(parent, "owner-"));
  const database = await startPostgres(binaries);
  const proxy = await startFaultProxy({ port: database.port });
  const upstream = await startUpstream(directory, { chunks: 20, paceMs: PACE_MS, delayMs: 0 });
  const ownerKey = createApiKeyText("sk");
  const start = (name: string, port: number) =>
    startSluice({
      directory: mkdtempSync(join(directory, `${name}-`)),
      upstreamPort: upstream.port,
      databaseUrl: database.url(port),
      ownerKey,
      environment: { ENCRYPTION_KEY },
    });
  const running: Sluice[] = [];
  const location = { dataDirectory: directory, databaseUrl: database.url() };
  try {
    const other = await start("other", database.port);
    running.push(other);
    const otherLoad = startLoad(other);
    const answers: Answer[] = [];
    const problems: string[] = [];
    let unheard = 0;
    for (let kill = 0; kill < kills; kill++) {
      const killed = await start("killed", proxy.port);
      running.push(killed);
      const load = startLoad(killed);
      await sleep(WARM_MS);
      proxy.holdAnswers();
      await sleep(UNHEARD_MS);
      await killed.kill();
      proxy.resetAll();
      proxy.heal();
      await load.stop();
      answers.push(...load.answers);
      unheard += await countUnheard(location, [...answers, ...otherLoad.answers]);
    }
    const killedAt = performance.now();
    const isRecovered = await untilOneProcessHolds(location, killedAt);
    const recoveredMs = performance.now() - killedAt;
    await otherLoad.stop();
    await other.stop();
    if (unheard === 0) problems.push("No kill met a settlement that was committed and not answered, so nothing was learned.");
    if (!isRecovered) problems.push("What the dead processes had set aside was not freed.");
    const broken = otherLoad.answers.filter(({ isWhole }) => !isWhole);
    if (broken.length > 0) problems.push(`${broken.length} answers of the process that lived failed: ${describe(broken)}.`);
    const examined = await examine(location, [...answers, ...otherLoad.answers], 0);
    return {
      title: `A lease's owner is killed between its commits and its answers, ${kills} times, beside a process that goes on, PostgreSQL`,
      facts: [
        ...examined.facts,
        `${otherLoad.answers.length} of the requests were the other process's: ${describe(otherLoad.answers)}`,
        `what the dead had set aside was free again ${format(recoveredMs)} ms after the last kill`,
      ],
      problems: [...problems, ...examined.problems],
    };
  } finally {
    for (const each of running) await killWhatRuns(each);
    await upstream.stop();
    await proxy.close();
    await database.stop();
  }
}

/** The number of whole answers with a usage row that have not reached their callers. */
function countUnheard(
  location: { readonly dataDirectory: string; readonly databaseUrl: string },
  answers: readonly Answer[],
): Promise<number> {
  const whole = new Set(answers.flatMap(({ isWhole, generationId }) => (isWhole && generationId ? [generationId] : [])));
  return withDatabase(location, async (query) => {
    const rows = await query<{ id: string }>("SELECT id::text AS id FROM usage_record WHERE status = 'ok'");
    return rows.filter(({ id }) => !whole.has(id)).length;
  });
}

/** False: time was up. */
function untilOneProcessHolds(location: { readonly dataDirectory: string; readonly databaseUrl: string }, since: number): Promise<boolean> {
  const find = `SELECT h.process_id FROM (SELECT process_id FROM credit_lease UNION SELECT process_id FROM hold) h
    LEFT JOIN gateway_process p ON p.id = h.process_id WHERE p.id IS NULL OR p.heartbeat_at < now() - interval '10 seconds'`;
  return withDatabase(location, async (query) => {
    while (performance.now() - since < RECOVERED_MS_MAX) {
      if ((await query(find)).length === 0) return true;
      await sleep(LOOK_MS);
    }
    return false;
  });
}

/** Under load, credits are granted, and a key's budget is cut down to little, which must then be spent to the last estimate and no further. */
export async function changeBudgets({ directory: parent, postgres: binaries }: LeaseOptions): Promise<FaultReport> {
  const directory = mkdtempSync(join(parent, "budget-"));
  const database = binaries === null ? null : await startPostgres(binaries);
  const upstream = await startUpstream(directory, { chunks: 20, paceMs: PACE_MS, delayMs: 0 });
  const databaseUrl = database?.url();
  let sluice: Sluice | null = null;
  try {
    sluice = await startSluice({
      directory,
      upstreamPort: upstream.port,
      ...(databaseUrl === undefined ? {} : { databaseUrl, workers: WORKERS }),
    });
    const gateway = sluice;
    const ask = (method: "GET" | "POST" | "PATCH", path: string, body?: object, key = gateway.ownerKey) =>
      callApi(gateway, method, path, key, body);
    const created = await ask("POST", "/account/keys", { name: "budget", creditBudget: MUCH });
    const [id, key] = [String(created.id), String(created.key)];
    const accountId = String((await ask("POST", "/graphql", { query: "{ me { restId } }" })).data?.me?.restId);
    const unbounded = startLoad(gateway);
    const load = startLoad(gateway, key);
    let isOver = false;
    let grants = 0;
    const granting = (async () => {
      const query = "mutation ($input: GrantCreditsInput!) { grantCredits(input: $input) { account { restId } } }";
      for (; !isOver; await sleep(GRANT_EVERY_MS)) {
        const { errors } = await ask("POST", "/graphql", { query, variables: { input: { accountId, bucket: "PACK", credits: "1" } } });
        if (errors) throw new Error(`A grant failed: ${JSON.stringify(errors)}`);
        grants += 1;
      }
    })();
    const problems: string[] = [];
    const left: string[] = [];
    let required = "0";
    for (let round = 0; round < BUDGET_ROUNDS; round++) {
      await sleep(WARM_MS);
      await ask("PATCH", `/account/keys/${id}`, { creditBudget: LITTLE });
      if (!(await untilRefused([load]))) problems.push("The lowered budget was not used up.");
      const budget = (await ask("GET", "/account/key", undefined, key)).creditBudget;
      const refused = await ask("POST", "/v1/chat/completions", JSON.parse(gateway.target("json").body), key);
      required = refused.error?.details?.required ?? "0";
      if (budget < 0 || nanocredits(budget) >= nanocredits(required))
        problems.push(`Of the budget ${budget} were left, and a request needs ${required}.`);
      left.push(String(budget));
      await ask("PATCH", `/account/keys/${id}`, { creditBudget: MUCH });
    }
    await sleep(WARM_MS);
    await ask("PATCH", `/account/keys/${id}`, { creditBudget: 0 });
    const loweredAt = performance.now();
    if (!(await untilRefused([load]))) problems.push("Somebody was served on and on when the budget had been taken away.");
    // The amount held at that moment may still be spent by the key.
    const heldMost = 2n * BigInt(CALLERS) * nanocredits(required);
    const spent = load.answers.reduce(
      (sum, { endedAt, costNanocredits }) => sum + (endedAt > loweredAt ? (costNanocredits ?? 0n) : 0n),
      0n,
    );
    if (spent > heldMost) problems.push(`${formatNanocredits(spent)} were spent when the budget had been taken away.`);
    isOver = true;
    await granting;
    await Promise.all([load.stop(), unbounded.stop()]);
    const books = await gateway.stop();
    const failed = unbounded.answers.filter(({ isWhole }) => !isWhole);
    if (failed.length > 0) problems.push(`${failed.length} answers that no budget bounds failed: ${describe(failed)}.`);
    const location = { dataDirectory: join(directory, "data"), databaseUrl: databaseUrl ?? null };
    const examined = await examine(location, [...load.answers, ...unbounded.answers], books?.openHolds ?? 0);
    return {
      title: `A budget is lowered and credits are granted while leases are out, ${binaries === null ? "embedded database" : `${WORKERS} workers on PostgreSQL`}`,
      facts: [
        ...examined.facts,
        `${grants} grants; of a budget of ${LITTLE} were left when nobody was served any more: ${left.join(", ")}`,
        `${formatNanocredits(spent)} were spent after the budget was set to 0, of ${formatNanocredits(heldMost)} that may have been held`,
      ],
      problems: [...problems, ...examined.problems],
    };
  } finally {
    if (sluice) await killWhatRuns(sluice);
    await upstream.stop();
    await database?.stop();
  }
}

/** Processes empty one account: two on PostgreSQL, one on the embedded database. */
export async function spendTheLast({ directory: parent, postgres: binaries }: LeaseOptions): Promise<FaultReport> {
  const directory = mkdtempSync(join(parent, "last-"));
  const database = binaries === null ? null : await startPostgres(binaries);
  const upstream = await startUpstream(directory, { chunks: 20, paceMs: PACE_MS, delayMs: 0 });
  const ownerKey = createApiKeyText("sk");
  const databaseUrl = database?.url();
  const running: Sluice[] = [];
  const start = async () => {
    const own = mkdtempSync(join(directory, "process-"));
    const environment = { ENCRYPTION_KEY, OWNER_CREDITS: LAST_CREDITS };
    const options = { directory: own, upstreamPort: upstream.port, ownerKey, environment };
    running.push(await startSluice(databaseUrl === undefined ? options : { ...options, databaseUrl }));
    return join(own, "data");
  };
  try {
    const dataDirectory = await start();
    if (database) await start();
    const before = await callApi(running[0] as Sluice, "GET", "/account/balance", ownerKey);
    const loads = running.map((sluice) => startLoad(sluice));
    const problems: string[] = [];
    if (!(await untilRefused(loads))) problems.push("The account was not emptied.");
    await Promise.all(loads.map((load) => load.stop()));
    const shown = await Promise.all(running.map((sluice) => callApi(sluice, "GET", "/account/balance", ownerKey)));
    const first = running[0] as Sluice;
    const refused = await callApi(first, "POST", "/v1/chat/completions", ownerKey, JSON.parse(first.target("json").body));
    const required = refused.error?.details?.required;
    for (const { balance } of shown) {
      if (required === undefined || balance < 0 || nanocredits(balance) >= nanocredits(required))
        problems.push(`${balance} credits were left, and a request needs ${required ?? "nothing"}.`);
    }
    let openHolds = 0;
    for (const sluice of running) openHolds = (await sluice.stop())?.openHolds ?? 0;
    const answers = loads.flatMap((load) => load.answers);
    const location = { dataDirectory, databaseUrl: databaseUrl ?? null };
    const examined = await examine(location, answers, openHolds);
    const [sums] = await withDatabase(location, (query) =>
      query<{
        left: string;
        charged: string;
      }>(`SELECT (SELECT sum(tier_nanocredits + crypto_nanocredits + pack_nanocredits) FROM account)::text AS left,
        (SELECT sum(cost_nanocredits) FROM usage_record)::text AS charged`),
    );
    const [left, charged] = [BigInt(sums?.left ?? 0), BigInt(sums?.charged ?? 0)];
    if (left + charged !== nanocredits(before.balance))
      problems.push(`Of ${before.balance} credits ${formatNanocredits(charged)} were charged, and ${formatNanocredits(left)} are left.`);
    if (shown.some(({ balance }) => nanocredits(balance) !== left))
      problems.push(`${shown.map(({ balance }) => balance).join(" and ")} were shown, and ${formatNanocredits(left)} are left.`);
    return {
      title: `${running.length === 1 ? "One process empties" : "Two processes empty"} an account, ${database ? "PostgreSQL" : "embedded database"}`,
      facts: [
        ...examined.facts,
        `of ${before.balance} credits ${formatNanocredits(left)} are left, where the next request needs ${required}; each process showed that`,
      ],
      problems: [...problems, ...examined.problems],
    };
  } finally {
    for (const each of running) await killWhatRuns(each);
    await upstream.stop();
    await database?.stop();
  }
}

function startLoad(sluice: Sluice, key?: string): RecordedLoad {
  const load = new RecordedLoad((workload: Workload) => {
    const target = sluice.target(workload);
    return key === undefined ? target : { ...target, headers: { ...target.headers, authorization: `Bearer ${key}` } };
  });
  load.start(CALLERS, false);
  load.start(CALLERS, true);
  return load;
}

/** Resolves when no caller has been served for a while; false when that does not happen. */
async function untilRefused(loads: readonly RecordedLoad[]): Promise<boolean> {
  const since = performance.now();
  while (performance.now() - since < QUIET_MS_MAX) {
    await sleep(LOOK_MS);
    const at = performance.now();
    const isQuiet = loads.every(({ answers }) => {
      const recent = answers.slice(-2_000).filter(({ endedAt }) => endedAt > at - QUIET_MS);
      return recent.length > 0 && recent.every(({ status }) => status === 402);
    });
    if (isQuiet && at - since > QUIET_MS) return true;
  }
  return false;
}

/** What the API answers, refusals for want of credits too. */
async function callApi(sluice: Sluice, method: "GET" | "POST" | "PATCH", path: string, key: string, body?: object): Promise<ApiAnswer> {
  const answer = await request(`http://127.0.0.1:${sluice.port}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200 && answer.statusCode !== 201 && answer.statusCode !== 402) throw new Error(`${method} ${path}: ${text}`);
  return JSON.parse(text) as ApiAnswer;
}

/** Of the answers that are asked for here. */
interface ApiAnswer {
  readonly id?: string;
  readonly key?: string;
  readonly balance: number;
  readonly creditBudget: number;
  readonly data?: { readonly me?: { readonly restId: string } };
  readonly errors?: readonly unknown[];
  readonly error?: { readonly details?: { readonly required?: string } };
}

function nanocredits(credits: number | string): bigint {
  const amount = parseNanocredits(typeof credits === "string" ? credits : credits.toFixed(9));
  if (amount === null) throw new Error(`${credits} is no amount of credits.`);
  return amount;
}
