/**
 * `npm run house`: the shape of the code, measured on this checkout, with the target beside it. Files are counted as they are. A
 * gateway on an embedded database answers one chat, ready and warm, and the engine says which functions were called: those are the files
 * that a chat touches, and the calls that its context is followed through. Statements are those that the gateway sends.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { readSources } from "../test/support/boundaries.js";
import { accountReadsIn, statementsOf } from "./house/account-reads.js";
import { startChatApp } from "./house/chat-app.js";
import { functionsCalledBy } from "./house/coverage.js";
import { measureShape } from "./house/shape.js";
import { followContext } from "./house/walk.js";

const CHAT = "/v1/chat/completions";
const ME = "{ me { name balance { available } lowBalance { threshold } } }";
/** What follows an answer, such as the line of the access log. */
const AFTERMATH_MS = 50;

// npm runs scripts in the project's root.
const root = process.cwd();
const isLong = process.argv.includes("--files");
const shape = measureShape(readSources(root, ["src"]));

const app = await startChatApp();
const called = await functionsCalledBy(
  async () => {
    await app.chat();
    await sleep(AFTERMATH_MS);
  },
  root,
  "src",
);
await app.query(ME);
const statements = await statementsOf(() => app.query(ME));
await app.close();

const touched = [...new Set(called.map(({ file }) => file))].sort();
const ways = followContext({ root, path: CHAT, called });

interface Row {
  readonly measure: string;
  readonly now: string;
  readonly target: string;
  /** What the numbers count. */
  readonly names: readonly string[];
}

const counted = (...numbers: readonly number[]) => numbers.join(", ");
const wayOf = (stays: readonly string[]) => {
  const files = new Set(stays).size;
  return counted(stays.length, files, stays.length - files);
};
const circles = (groups: readonly (readonly string[])[]) => groups.map((group) => group.join(" ⇄ "));

const rows: readonly Row[] = [
  {
    measure: "files that one JSON chat touches, and generation's share",
    now: counted(touched.length, touched.filter((file) => file.startsWith("src/services/generation/")).length),
    target: "at most 40, 8",
    names: touched,
  },
  {
    measure: "the way of `ctx` and of what is made of it through a JSON chat: stays in files, different files, returns",
    now: wayOf(ways.derived),
    target: "at most 22, 14, 6",
    names: ways.derived,
  },
  { measure: "the way of `ctx` itself", now: wayOf(ways.context), target: "", names: ways.context },
  { measure: "files that open or settle a charge", now: counted(shape.chargePlaces.length), target: "1", names: shape.chargePlaces },
  { measure: "files directly in `src/services/`, in `src/`", now: counted(shape.inServices, shape.inSource), target: "1, 5", names: [] },
  {
    measure: "source files; of them under 40 lines; of those with one importer",
    now: counted(shape.files, shape.small, shape.smallWithOneImporter),
    target: "about 480; at most 70",
    names: [],
  },
  {
    measure: "circles of imports, types included: of files, of domains of the services",
    now: counted(shape.fileCircles.length, shape.domainCircles.length),
    target: "0, 0",
    names: [...circles(shape.fileCircles), ...circles(shape.domainCircles)],
  },
  {
    measure: "tables of statuses, builders of contexts",
    now: counted(shape.statusTables.length, shape.contextBuilders.length),
    target: "1, 1",
    names: [...shape.statusTables, ...shape.contextBuilders],
  },
  {
    measure: "reads of the account for `me { name balance { available } lowBalance { threshold } }`",
    now: counted(statements.reduce((reads, statement) => reads + accountReadsIn(statement), 0)),
    target: "1",
    names: statements,
  },
];

console.log(["| measure | now | target |", "| --- | --- | --- |"].join("\n"));
for (const { measure, now, target } of rows) console.log(`| ${measure} | ${now} | ${target} |`);
if (isLong)
  for (const { measure, names } of rows) if (names.length > 0) console.log(`\n${measure}:\n${names.map((name) => `  ${name}`).join("\n")}`);
