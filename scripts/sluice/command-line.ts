/** The commands and options of the command line. */
import { randomUUID } from "node:crypto";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { AGENT_PROGRAMS } from "./agents.js";
import { SPEND_GROUPINGS, type SpendGrouping } from "./spend.js";

export const HELP = `Usage: npm run sluice -- <command>

  account list [--search <text>] [--limit <number>]   accounts, newest first; 20 unless said
  account find <text>                                 by part of a handle, name or e-mail address; by the id of an account, key, session,
                                                      generation (X-Generation-Id) or grant; by the X-Request-Id of a refused or
                                                      failed request; or by a key or its beginning
  account show <account>
  account create <e-mail address> [--name <text>]     prints a password to sign in with, once
  account tier <account> <tier>                       gives the tier's credits at once
  account tier <account> --none                       ends refills; what is left lapses at the next boundary
  account suspend <account> --reason <text>           refuses its keys and sessions, and ends its running generations
  account restore <account> [--reason <text>]         accepts them again
  account password-link <account>                     prints a link to set a new password: once, within 24 hours
  account keys <account>                              its keys, without their text
  sessions end <account> [--reason <text>]            ends all its browser sessions
  key revoke <key id> [--reason <text>]               of any account, with the keys that were made with it
  credits take <account> <credits> [--bucket pack|crypto|tier] [--note <text>] [--withdrawal-id <uuid>]
                                                      at most the available ones; once for each withdrawal id
  audit list [--account <account>] [--act <act>] [--from <time>] [--to <time>] [--limit <number>]
                                                      acts of operators, newest first; 20 unless said
  audit export [the same options]                     as CSV; all unless said
  credits grant <account> <credits> [--bucket pack|crypto|tier] [--note <text>] [--grant-id <uuid>]
                                                      to the pack unless said; once for each grant id
  publisher allow <account>                           may publish community models and agents
  publisher deny <account>
  operator allow <account>                            may do all of this, and sees the dashboard's page of operators
  operator deny <account>                             all but the last one
  spend --by person|key|model [--month <YYYY-MM>] [--account <account>] [--limit <number>] [--csv]
                                                      credits of a month (UTC), the present one unless said, with the total; the
                                                      20 highest unless said; --csv prints all as CSV
  books [--from <time>] [--to <time>] [--csv]         the trial balance of a period: books, movements by kind, totals
  books refused                                       charges that the database refuses, of the process that answers
  books retry                                         tries them once more, and lists what is still refused
  owner key [--revoke-others]                         prints one more key of the owner's account; asks the database, not the gateway
                                                      --revoke-others ends the owner's other keys, and all that were made with them
  secrets reseal                                      the second half of a rotation of ENCRYPTION_KEY: seals stored credentials again, beside
                                                      running gateways; can be interrupted and repeated
  secrets forget [--confirm <name>]                   when ENCRYPTION_KEY is lost: counts the losses; with the name that it prints,
                                                      accepts them, keeps accounts and balances, and prints a new owner's key
  agents setup <program> --model <model> [--write]    prints the lines that point a coding agent at the gateway, with SLUICE_KEY as its
                                                      key; --write adds them to its settings
                                                      programs: ${AGENT_PROGRAMS.join(", ")}
  key generate                                        prints a well-formed secret key for OWNER_API_KEY; asks nobody
  help

<account> is an id, a handle or an e-mail address. --json prints what was answered as JSON.

Environment, and .env in the working directory:
             SLUICE_URL   where the gateway is; http://localhost:<PORT> unless said
             SLUICE_KEY   an operator's secret key with the permission keys (SLUICE_API_KEY is read too); else OWNER_API_KEY
             owner key, secrets
                          read what the gateway reads: DATABASE_URL, DATA_DIR, ENCRYPTION_KEY, ...

Exit codes:  0 done   1 refused, or no gateway answered   2 not a command`;

export const BUCKETS = ["pack", "crypto", "tier"] as const;
export type Bucket = (typeof BUCKETS)[number];

export type Command =
  | { readonly name: "help" }
  | { readonly name: "account list"; readonly search: string | null; readonly limit: number }
  | { readonly name: "account show" | "account password-link" | "account keys"; readonly account: string }
  | { readonly name: "account suspend"; readonly account: string; readonly reason: string }
  | { readonly name: "account restore" | "sessions end"; readonly account: string; readonly reason: string | null }
  | { readonly name: "key revoke"; readonly apiKeyId: string; readonly reason: string | null }
  | {
      readonly name: "credits take";
      readonly account: string;
      /** A decimal. */
      readonly credits: string;
      readonly bucket: Bucket;
      readonly note: string | null;
      readonly withdrawalId: string;
    }
  | {
      readonly name: "audit list" | "audit export";
      readonly account: string | null;
      readonly acts: readonly string[] | null;
      readonly from: string | null;
      readonly to: string | null;
      readonly limit: number;
    }
  | {
      readonly name: "spend";
      readonly by: SpendGrouping;
      readonly month: string | null;
      readonly account: string | null;
      readonly limit: number;
      readonly isCsv: boolean;
    }
  | { readonly name: "account create"; readonly email: string; readonly fullName: string | null }
  | { readonly name: "account tier"; readonly account: string; readonly tier: string | null }
  | {
      readonly name: "credits grant";
      readonly account: string;
      /** A decimal. */
      readonly credits: string;
      readonly bucket: Bucket;
      readonly note: string | null;
      readonly grantId: string;
    }
  | { readonly name: "publisher"; readonly account: string; readonly allowed: boolean }
  | { readonly name: "operator"; readonly account: string; readonly allowed: boolean }
  | { readonly name: "books"; readonly from: string | null; readonly to: string | null; readonly isCsv: boolean }
  | { readonly name: "books refused" }
  | { readonly name: "books retry" }
  | { readonly name: "owner key"; readonly revokesOthers: boolean }
  | { readonly name: "secrets reseal" }
  | { readonly name: "secrets forget"; readonly confirm: string | null }
  | { readonly name: "agents setup"; readonly program: string; readonly model: string; readonly isWritten: boolean }
  | { readonly name: "key generate" };

export interface CommandLine {
  readonly command: Command;
  readonly isJson: boolean;
}

/** An invalid command line, with a message that points to the help. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 10_000;
/** An id or alias of a model. */
const MODEL_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,252}$/;
const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values = Readonly<Record<string, string | boolean | undefined>>;

interface Form {
  readonly options: Options;
  /** The positional arguments that must be there, by name. */
  readonly takes: (values: Values) => readonly string[];
  readonly read: (values: Values, given: readonly string[]) => Command;
}

const AUDIT_OPTIONS: Options = {
  account: { type: "string" },
  act: { type: "string" },
  from: { type: "string" },
  to: { type: "string" },
  limit: { type: "string" },
};

const FORMS: Readonly<Record<string, Form>> = {
  "account list": {
    options: { search: { type: "string" }, limit: { type: "string" } },
    takes: () => [],
    read: ({ search, limit }) => ({ name: "account list", search: text(search), limit: toLimit(text(limit)) }),
  },
  "account show": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "account show", account }),
  },
  "account find": {
    options: { limit: { type: "string" } },
    takes: () => ["text"],
    read: ({ limit }, [search = ""]) => ({ name: "account list", search, limit: toLimit(text(limit)) }),
  },
  "account suspend": {
    options: { reason: { type: "string" } },
    takes: () => ["account"],
    read: ({ reason }, [account = ""]) => {
      const why = text(reason)?.trim();
      if (!why) throw new UsageError("account suspend needs --reason <text>, which operators and the audit log show.");
      return { name: "account suspend", account, reason: why };
    },
  },
  "account restore": {
    options: { reason: { type: "string" } },
    takes: () => ["account"],
    read: ({ reason }, [account = ""]) => ({ name: "account restore", account, reason: text(reason) }),
  },
  "account password-link": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "account password-link", account }),
  },
  "account keys": { options: {}, takes: () => ["account"], read: (_, [account = ""]) => ({ name: "account keys", account }) },
  "sessions end": {
    options: { reason: { type: "string" } },
    takes: () => ["account"],
    read: ({ reason }, [account = ""]) => ({ name: "sessions end", account, reason: text(reason) }),
  },
  "key revoke": {
    options: { reason: { type: "string" } },
    takes: () => ["key id"],
    read: ({ reason }, [apiKeyId = ""]) => {
      if (!isId(apiKeyId)) throw new UsageError("<key id> is a UUID: `account keys <account>` lists the keys of an account.");
      return { name: "key revoke", apiKeyId, reason: text(reason) };
    },
  },
  "credits take": {
    options: { bucket: { type: "string" }, note: { type: "string" }, "withdrawal-id": { type: "string" } },
    takes: () => ["account", "credits"],
    read: (values, [account = "", credits = ""]) => ({
      name: "credits take",
      account,
      credits: toCredits(credits),
      bucket: toBucket(text(values.bucket)),
      note: text(values.note),
      withdrawalId: toUuid(text(values["withdrawal-id"]), "--withdrawal-id"),
    }),
  },
  "audit list": { options: AUDIT_OPTIONS, takes: () => [], read: (values) => toAudit("audit list", values, LIMIT_DEFAULT) },
  "audit export": { options: AUDIT_OPTIONS, takes: () => [], read: (values) => toAudit("audit export", values, LIMIT_MAX) },
  spend: {
    options: {
      by: { type: "string" },
      month: { type: "string" },
      account: { type: "string" },
      limit: { type: "string" },
      csv: { type: "boolean" },
    },
    takes: () => [],
    read: (values) => toSpend(values),
  },
  "account create": {
    options: { name: { type: "string" } },
    takes: () => ["e-mail address"],
    read: ({ name }, [email = ""]) => ({ name: "account create", email, fullName: text(name) }),
  },
  "account tier": {
    options: { none: { type: "boolean" } },
    takes: ({ none }) => (none ? ["account"] : ["account", "tier"]),
    read: (_, [account = "", tier = null]) => ({ name: "account tier", account, tier }),
  },
  "credits grant": {
    options: { bucket: { type: "string" }, note: { type: "string" }, "grant-id": { type: "string" } },
    takes: () => ["account", "credits"],
    read: (values, [account = "", credits = ""]) => ({
      name: "credits grant",
      account,
      credits: toCredits(credits),
      bucket: toBucket(text(values.bucket)),
      note: text(values.note),
      grantId: toUuid(text(values["grant-id"]), "--grant-id"),
    }),
  },
  "publisher allow": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "publisher", account, allowed: true }),
  },
  "publisher deny": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "publisher", account, allowed: false }),
  },
  "operator allow": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "operator", account, allowed: true }),
  },
  "operator deny": {
    options: {},
    takes: () => ["account"],
    read: (_, [account = ""]) => ({ name: "operator", account, allowed: false }),
  },
  books: {
    options: { from: { type: "string" }, to: { type: "string" }, csv: { type: "boolean" } },
    takes: () => [],
    read: ({ from, to, csv, json }) => {
      if (csv === true && json === true) throw new UsageError("books prints --json or --csv, not both.");
      return { name: "books", from: toTime(text(from), "--from"), to: toTime(text(to), "--to"), isCsv: csv === true };
    },
  },
  "books refused": { options: {}, takes: () => [], read: () => ({ name: "books refused" }) },
  "books retry": { options: {}, takes: () => [], read: () => ({ name: "books retry" }) },
  "owner key": {
    options: { "revoke-others": { type: "boolean" } },
    takes: () => [],
    read: (values) => ({ name: "owner key", revokesOthers: values["revoke-others"] === true }),
  },
  "secrets reseal": { options: {}, takes: () => [], read: () => ({ name: "secrets reseal" }) },
  "secrets forget": {
    options: { confirm: { type: "string" } },
    takes: () => [],
    read: ({ confirm }) => ({ name: "secrets forget", confirm: text(confirm) }),
  },
  "agents setup": {
    options: { model: { type: "string" }, write: { type: "boolean" } },
    takes: () => ["program"],
    read: ({ model, write }, [program = ""]) => {
      if (!AGENT_PROGRAMS.includes(program)) throw new UsageError(`<program> is one of ${AGENT_PROGRAMS.join(", ")}.`);
      if (!MODEL_PATTERN.test(text(model) ?? ""))
        throw new UsageError("agents setup needs --model <model>; GET /v1/models lists the models.");
      return { name: "agents setup", program, model: text(model) ?? "", isWritten: write === true };
    },
  },
  "key generate": { options: {}, takes: () => [], read: () => ({ name: "key generate" }) },
};

/** Throws a UsageError. */
export function readCommandLine(args: readonly string[]): CommandLine {
  if (args.length === 0 || args[0] === "help" || args.includes("--help") || args.includes("-h")) {
    return { command: { name: "help" }, isJson: false };
  }
  const words = Object.hasOwn(FORMS, args.slice(0, 2).join(" ")) || !Object.hasOwn(FORMS, args[0] ?? "") ? 2 : 1;
  const name = args.slice(0, words).join(" ");
  const form = Object.hasOwn(FORMS, name) ? FORMS[name] : undefined;
  if (!form) throw new UsageError(`There is no command ${JSON.stringify(name)}.`);
  const { values, positionals } = parse(args.slice(words), { ...form.options, json: { type: "boolean" } });
  const takes = form.takes(values);
  const missing = takes.slice(positionals.length);
  if (missing.length > 0) throw new UsageError(`${name} needs ${missing.map((each) => `<${each}>`).join(" and ")}.`);
  if (positionals.length > takes.length) throw new UsageError(`${name} does not take ${JSON.stringify(positionals[takes.length])}.`);
  if (positionals.includes("")) throw new UsageError(`${name} does not take an empty argument.`);
  return { command: form.read(values, positionals), isJson: values.json === true };
}

function parse(args: string[], options: Options): { values: Values; positionals: string[] } {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    return { values: values as Values, positionals };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function text(value: string | boolean | undefined): string | null {
  return typeof value === "string" ? value : null;
}

function toLimit(value: string | null): number {
  if (value === null) return LIMIT_DEFAULT;
  const limit = /^\d{1,6}$/.test(value) ? Number(value) : 0;
  if (limit < 1 || limit > LIMIT_MAX) throw new UsageError(`--limit takes a whole number from 1 to ${LIMIT_MAX}.`);
  return limit;
}

function toCredits(value: string): string {
  if (!/^\d{1,12}(?:\.\d{1,9})?$/.test(value) || Number(value) === 0) {
    throw new UsageError("<credits> is a decimal above 0 with at most 9 decimal places, such as 25 or 0.5.");
  }
  return value;
}

function toBucket(value: string | null): Bucket {
  const bucket = BUCKETS.find((each) => each === (value ?? "pack"));
  if (!bucket) throw new UsageError(`--bucket is one of ${BUCKETS.join(", ")}.`);
  return bucket;
}

function toAudit(name: "audit list" | "audit export", values: Values, limitDefault: number): Command {
  const limit = text(values.limit);
  const act = text(values.act);
  return {
    name,
    account: text(values.account),
    acts: act === null ? null : [act.toUpperCase().replaceAll("-", "_")],
    from: toTime(text(values.from), "--from"),
    to: toTime(text(values.to), "--to"),
    limit: limit === null ? limitDefault : toLimit(limit),
  };
}

/** What one GraphQL operation may cost. */
const SPEND_LIMIT_MAX = 200;

function toSpend(values: Values): Command {
  const by = SPEND_GROUPINGS.find((each) => each === values.by);
  if (!by) throw new UsageError(`spend needs --by ${SPEND_GROUPINGS.join("|")}.`);
  const month = text(values.month);
  if (month !== null && !/^2\d{3}-(?:0[1-9]|1[0-2])$/.test(month)) throw new UsageError("--month takes a month such as 2026-11.");
  const isCsv = values.csv === true;
  if (isCsv && values.json === true) throw new UsageError("spend prints --json or --csv, not both.");
  if (isCsv && values.limit !== undefined) throw new UsageError("--csv prints all groups, so it takes no --limit.");
  const limit = toLimit(text(values.limit));
  if (limit > SPEND_LIMIT_MAX) throw new UsageError(`--limit takes a whole number from 1 to ${SPEND_LIMIT_MAX}.`);
  return { name: "spend", by, month, account: text(values.account), limit, isCsv };
}

function toTime(value: string | null, option: string): string | null {
  if (value === null) return null;
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) throw new UsageError(`${option} takes a time such as 2026-11-21 or 2026-11-21T09:30:00Z.`);
  return date.toISOString();
}

function toUuid(value: string | null, option: string): string {
  if (value !== null && !UUID_PATTERN.test(value)) throw new UsageError(`${option} takes a UUID.`);
  return value ?? randomUUID();
}

export function isId(account: string): boolean {
  return UUID_PATTERN.test(account);
}
