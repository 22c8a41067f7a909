/** The commands: each calls the gateway, or the database where there is no gateway, and prints the result. */
import { homedir } from "node:os";
import { createApiKeyText } from "../../src/lib/api-key-format.js";
import { StartError } from "../../src/lib/start-error.js";
import { showSetup, writeSetup } from "./agents.js";
import { showBooks } from "./books.js";
import { type Command, HELP, isId, readCommandLine, UsageError } from "./command-line.js";
import { connectGateway, type Gateway, GatewayError } from "./gateway.js";
import { endSessions, exportAudit, listAudit, listKeys, makePasswordLink, restore, revokeKey, suspend, takeCredits } from "./operators.js";
import { runOwnerKey } from "./owner-key.js";
import { type Account, type Outcome, printable, type RefusedSettlements, toLines, toRefusedTable, toTable } from "./present.js";
import { runForget, runReseal } from "./secrets.js";
import { showSpend } from "./spend.js";

export interface Terminal {
  readonly out: (text: string) => void;
  readonly error: (text: string) => void;
}

type Environment = Readonly<Record<string, string | undefined>>;

const EXIT_DONE = 0;
const EXIT_REFUSED = 1;
const EXIT_USAGE = 2;

/** Of the gateway's own pages. */
const PAGE_SIZE_MAX = 100;

const FIELDS = `id: restId handle name email githubUsername tier nextResetAt isOperator isPublisher suspendedAt suspensionReason createdAt
  balance { available tier crypto pack held }`;

/** Resolves with the exit code. Nothing is thrown that an operator can do something about. */
export async function runSluice(args: readonly string[], env: Environment, terminal: Terminal): Promise<number> {
  try {
    const { command, isJson } = readCommandLine(args);
    if (command.name === "help") {
      terminal.out(HELP);
      return EXIT_DONE;
    }
    const { answer, words, advice } = await run(env, command, terminal);
    terminal.out(isJson ? JSON.stringify(answer, null, 2) : words);
    if (advice !== undefined && !isJson) terminal.error(`sluice: ${printable(advice)}`);
    return EXIT_DONE;
  } catch (error) {
    if (error instanceof UsageError) {
      terminal.error(`sluice: ${printable(error.message)}\nsluice: \`npm run sluice -- help\` lists the commands.`);
      return EXIT_USAGE;
    }
    if (!(error instanceof GatewayError || error instanceof StartError)) throw error;
    for (const line of error.message.split("\n")) terminal.error(`sluice: ${printable(line)}`);
    return EXIT_REFUSED;
  }
}

function openGateway(env: Environment): Gateway {
  const url = urlOf(env);
  const key = env.SLUICE_KEY || env.SLUICE_API_KEY || env.OWNER_API_KEY;
  if (!key) throw new UsageError("SLUICE_KEY (or OWNER_API_KEY) must hold an operator's key; `npm run -s sluice -- owner key` makes one.");
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError("SLUICE_KEY holds characters that no key has.");
  return connectGateway(url, key);
}

function urlOf(env: Environment): string {
  const port = /^[1-9]\d{0,4}$/.test(env.PORT ?? "") ? env.PORT : "4000";
  const url = env.SLUICE_URL || `http://localhost:${port}`;
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) throw new UsageError("SLUICE_URL must be an http or https URL.");
  return url;
}

function setUpAgent(env: Environment, { program, model, isWritten }: Command & { name: "agents setup" }): Promise<Outcome> | Outcome {
  const target = { url: new URL(urlOf(env)).href.replace(/\/$/, ""), key: env.SLUICE_KEY || null, model };
  return isWritten ? writeSetup(program, target, { home: env.HOME || homedir(), project: process.cwd() }) : showSetup(program, target);
}

async function run(env: Environment, command: Exclude<Command, { name: "help" }>, terminal: Terminal): Promise<Outcome> {
  switch (command.name) {
    case "owner key":
      return runOwnerKey(env, command.revokesOthers);
    case "secrets reseal":
      return runReseal(env, terminal.error);
    case "secrets forget":
      return runForget(env, command.confirm);
    case "agents setup":
      return setUpAgent(env, command);
    case "key generate": {
      const key = createApiKeyText("sk");
      return { answer: { key }, words: key };
    }
    default:
      return ask(openGateway(env), command);
  }
}

type Asked = Exclude<Command, { name: "help" | "owner key" | "secrets reseal" | "secrets forget" | "agents setup" | "key generate" }>;

async function ask(gateway: Gateway, command: Asked): Promise<Outcome> {
  switch (command.name) {
    case "account list":
      return list(gateway, command);
    case "account show":
      return show(gateway, command.account);
    case "account create":
      return create(gateway, command);
    case "account tier":
      return setTier(gateway, command);
    case "credits grant":
      return grant(gateway, command);
    case "publisher":
      return setPublisher(gateway, command);
    case "operator":
      return setOperator(gateway, command);
    case "account suspend":
      return suspend(gateway, await resolve(gateway, command.account), command.reason);
    case "account restore":
      return restore(gateway, await resolve(gateway, command.account), command.reason);
    case "account password-link":
      return makePasswordLink(gateway, await resolve(gateway, command.account));
    case "account keys":
      return listKeys(gateway, await resolve(gateway, command.account));
    case "sessions end":
      return endSessions(gateway, await resolve(gateway, command.account), command.reason);
    case "key revoke":
      return revokeKey(gateway, command.apiKeyId, command.reason);
    case "credits take":
      return takeCredits(gateway, await resolve(gateway, command.account), command);
    case "audit list":
    case "audit export": {
      const accountId = command.account === null ? null : await resolve(gateway, command.account);
      return (command.name === "audit list" ? listAudit : exportAudit)(gateway, { ...command, accountId });
    }
    case "spend":
      return showSpend(gateway, { ...command, accountId: command.account === null ? null : await resolve(gateway, command.account) });
    case "books":
      return showBooks(gateway, command);
    case "books refused":
      return refused(gateway);
    case "books retry":
      return retryRefused(gateway);
  }
}

async function list(gateway: Gateway, { search, limit }: Command & { name: "account list" }): Promise<Outcome> {
  const accounts: Account[] = [];
  for await (const page of pages(gateway, search, limit)) accounts.push(...page);
  return { answer: accounts, words: accounts.length === 0 ? "No account was found." : toTable(accounts) };
}

async function show(gateway: Gateway, account: string): Promise<Outcome> {
  const id = await resolve(gateway, account);
  const { account: found } = await gateway.ask<{ account: Account }>(`query ($id: ID!) { account(id: $id) { ${FIELDS} } }`, { id });
  return { answer: found, words: toLines(found) };
}

async function create(gateway: Gateway, { email, fullName }: Command & { name: "account create" }): Promise<Outcome> {
  const input = { email, name: fullName };
  const query = `mutation ($input: CreateAccountInput!) { createAccount(input: $input) { password account { ${FIELDS} } } }`;
  const { createAccount: created } = await gateway.ask<{ createAccount: { password: string; account: Account } }>(query, { input });
  const advice = `Password, shown this once: ${created.password}\nChange it at /dashboard/account after the first sign-in.`;
  return { answer: created, words: `${toLines(created.account)}\n${advice}` };
}

async function setTier(gateway: Gateway, { account, tier }: Command & { name: "account tier" }): Promise<Outcome> {
  const input = { accountId: await resolve(gateway, account), tier };
  const query = `mutation ($input: SetTierInput!) { setTier(input: $input) { account { ${FIELDS} } } }`;
  const { setTier: changed } = await gateway.ask<{ setTier: { account: Account } }>(query, { input });
  return { answer: changed.account, words: toLines(changed.account) };
}

async function setPublisher(gateway: Gateway, { account, allowed }: Command & { name: "publisher" }): Promise<Outcome> {
  const input = { accountId: await resolve(gateway, account), isPublisher: allowed };
  const query = `mutation ($input: SetPublisherInput!) { setPublisher(input: $input) { account { ${FIELDS} } } }`;
  const { setPublisher: changed } = await gateway.ask<{ setPublisher: { account: Account } }>(query, { input });
  return { answer: changed.account, words: toLines(changed.account) };
}

async function setOperator(gateway: Gateway, { account, allowed }: Command & { name: "operator" }): Promise<Outcome> {
  const input = { accountId: await resolve(gateway, account), isOperator: allowed };
  const query = `mutation ($input: SetOperatorInput!) { setOperator(input: $input) { account { ${FIELDS} } } }`;
  const { setOperator: changed } = await gateway.ask<{ setOperator: { account: Account } }>(query, { input });
  return { answer: changed.account, words: toLines(changed.account) };
}

const REFUSED_FIELDS =
  "refusedSettlements { count settlements { id: generationId accountId apiKeyId model: modelId cost timestamp refusedAt reason } }";

async function refused(gateway: Gateway): Promise<Outcome> {
  return toRefused(await gateway.ask<ShownRefusals>(`{ ${REFUSED_FIELDS} }`, {}));
}

async function retryRefused(gateway: Gateway): Promise<Outcome> {
  const query = `mutation { retryRefusedSettlements(input: {}) { ${REFUSED_FIELDS} } }`;
  return toRefused((await gateway.ask<{ readonly retryRefusedSettlements: ShownRefusals }>(query, {})).retryRefusedSettlements);
}

interface ShownRefusals {
  readonly refusedSettlements: RefusedSettlements;
}

function toRefused({ refusedSettlements: answer }: ShownRefusals): Outcome {
  return { answer, words: toRefusedTable(answer) };
}

async function grant(gateway: Gateway, command: Command & { name: "credits grant" }): Promise<Outcome> {
  const { credits, note, grantId } = command;
  const bucket = command.bucket.toUpperCase();
  const input = { accountId: await resolve(gateway, command.account), bucket, credits, note, grantId };
  const query = `mutation ($input: GrantCreditsInput!) { grantCredits(input: $input) { account { ${FIELDS} } } }`;
  const {
    grantCredits: { account },
  } = await gateway.ask<{ grantCredits: { account: Account } }>(query, { input }).catch((error: unknown) => {
    if (!(error instanceof GatewayError && error.isOutcomeUnknown)) throw error;
    const advice = `Whether the credits were granted is not known. With --grant-id ${grantId} the same grant is made once, however often.`;
    throw new GatewayError(`${error.message}\n${advice}`, true);
  });
  const words = `Granted ${credits} credits to ${printable(account.handle)} (${command.bucket}); the balance is ${account.balance.available}. Grant id: ${grantId}`;
  return { answer: { account, balance: account.balance.available, grantId }, words };
}

/** The id of an account that is named by its id, handle or e-mail address. */
async function resolve(gateway: Gateway, account: string): Promise<string> {
  if (isId(account)) return account;
  for await (const page of pages(gateway, account, Number.POSITIVE_INFINITY)) {
    // Handles that differ in case alone are two accounts'.
    const found = page.find(({ handle, email }) => handle === account || email?.toLowerCase() === account.toLowerCase());
    if (found) return found.id;
  }
  throw new GatewayError(`No account has the id, handle or e-mail address ${JSON.stringify(account)}.`, false);
}

interface AccountsPage {
  readonly accounts: {
    readonly edges: readonly { readonly node: Account }[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  };
}

async function* pages(gateway: Gateway, search: string | null, limit: number): AsyncGenerator<readonly Account[]> {
  const query = `query ($first: Int, $after: String, $search: String) {
    accounts(first: $first, after: $after, search: $search) { edges { node { ${FIELDS} } } pageInfo { hasNextPage endCursor } }
  }`;
  let after: string | null = null;
  for (let left = limit; left > 0; left -= PAGE_SIZE_MAX) {
    const { accounts }: AccountsPage = await gateway.ask(query, { first: Math.min(left, PAGE_SIZE_MAX), after, search });
    yield accounts.edges.map(({ node }) => node);
    if (!accounts.pageInfo.hasNextPage) return;
    after = accounts.pageInfo.endCursor;
  }
}
