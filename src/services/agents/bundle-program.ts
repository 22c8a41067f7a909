/**
 * The bundler of code agents, a separate process that makes one bundle. Its parent bounds memory and time, gives it no secrets, and answers
 * its questions about files. It reads none itself.
 */
import { type BuildFailure, build, type OnLoadResult, type OnResolveResult, type PartialMessage } from "esbuild";

/** Questions to the parent; each answer comes in turn. */
export type BundleQuestion =
  | { readonly id: number; readonly kind: "resolve"; readonly specifier: string; readonly importer: string }
  | { readonly id: number; readonly kind: "load"; readonly path: string };
export type BundleAnswer =
  | { readonly id: number; readonly path: string }
  | { readonly id: number; readonly contents: string; readonly loader: "ts" | "js" | "json" }
  | { readonly id: number; readonly problem: string };
export type BundleResult = { readonly script: string; readonly exports: readonly string[] } | { readonly problem: string };
export type BundleMessage = { readonly question: BundleQuestion } | { readonly result: BundleResult };

const ENTRY = "agent.ts";
const NAMESPACE = "repository";
/** The engine that runs the script; newer syntax is rewritten for it. */
const TARGET = "deno2";

const waiting = new Map<number, (answer: BundleAnswer) => void>();
let questions = 0;

process.on("message", (answer: BundleAnswer) => {
  waiting.get(answer.id)?.(answer);
  waiting.delete(answer.id);
});
process.on("disconnect", () => process.exit(1));

process.send?.({ result: await bundle() } satisfies BundleMessage, () => process.exit(0));

async function bundle(): Promise<BundleResult> {
  try {
    const { outputFiles, metafile } = await build({
      entryPoints: [ENTRY],
      bundle: true,
      write: false,
      metafile: true,
      format: "esm",
      platform: "neutral",
      target: TARGET,
      charset: "utf8",
      legalComments: "none",
      logLevel: "silent",
      tsconfigRaw: "{}",
      plugins: [
        {
          name: NAMESPACE,
          setup: ({ onResolve, onLoad }) => {
            onResolve({ filter: /.*/ }, ({ kind, path, importer }) => (kind === "entry-point" ? found(path) : resolve(path, importer)));
            onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => load(path));
          },
        },
      ],
    });
    const exports = Object.values(metafile.outputs).flatMap((output) => output.exports);
    return { script: outputFiles[0]?.text ?? "", exports };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

async function resolve(specifier: string, importer: string): Promise<OnResolveResult> {
  const answer = await ask((id) => ({ id, kind: "resolve", specifier, importer }));
  return "path" in answer ? found(answer.path) : refused(answer);
}

async function load(path: string): Promise<OnLoadResult> {
  const answer = await ask((id) => ({ id, kind: "load", path }));
  return "contents" in answer ? { contents: answer.contents, loader: answer.loader } : refused(answer);
}

function ask(create: (id: number) => BundleQuestion): Promise<BundleAnswer> {
  questions += 1;
  const question = create(questions);
  return new Promise((resolve) => {
    waiting.set(question.id, resolve);
    process.send?.({ question } satisfies BundleMessage);
  });
}

function found(path: string): OnResolveResult {
  return { path, namespace: NAMESPACE };
}

/** In this form the bundler adds the line of the import. */
function refused(answer: BundleAnswer): { readonly errors: PartialMessage[] } {
  return { errors: [{ text: "problem" in answer ? answer.problem : "" }] };
}

/** An empty message: it crashed on these sources. */
function messageOf(error: unknown): string {
  const [first] = (error as Partial<BuildFailure>).errors ?? [];
  if (first === undefined) return "";
  const { location, text } = first;
  return location ? `${location.file.replace(`${NAMESPACE}:`, "")}:${location.line}: ${text}` : text;
}
