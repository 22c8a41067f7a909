/**
 * Parts of packages that the server's bundle leaves out, or has in another way, because its process would keep them in memory for as
 * long as it runs.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where the query compiler lies beside the bundle. */
const QUERY_COMPILER = "query-compiler.wasm";

/**
 * Prisma has its query compiler as text in a module, which stays twice: as the module's source and as its value. Here it is a file, which
 * is read when the client asks for it: `Buffer.from`, by which the client decodes the text, takes the value of an object that has one.
 */
const queryCompilerAsFile = {
  name: "query compiler as a file",
  setup({ onResolve, onLoad, initialOptions }) {
    onResolve({ filter: /^@prisma\/client\/runtime\/query_compiler_\w+\.postgresql\.wasm-base64\.mjs$/ }, ({ path }) => ({
      path,
      namespace: "query-compiler",
    }));
    onLoad({ filter: /^/, namespace: "query-compiler" }, async ({ path }) => {
      const { wasm } = await import(path);
      writeFileSync(join(initialOptions.outdir, QUERY_COMPILER), Buffer.from(wasm, "base64"));
      const contents = `
        import { readFileSync } from "node:fs";
        export const wasm = { valueOf: () => readFileSync(new URL("./${QUERY_COMPILER}", import.meta.url)) };`;
      return { contents, resolveDir: initialOptions.outdir };
    });
  },
};

/** Messages are English. Zod exports its translations as one object, which no bundler can take apart. */
const zodInEnglish = {
  name: "zod in English",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents: 'export { default as en } from "./en.js";' }));
  },
};

/** Express offers the parsers of bodies, with half a megabyte of character sets, that the gateway has its own way of reading for. */
const expressWithoutBodyParser = {
  name: "express without body-parser",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^body-parser$/ }, () => ({ path: "body-parser", namespace: "left-out" }));
    onLoad({ filter: /^body-parser$/, namespace: "left-out" }, () => ({ contents: "module.exports = {};" }));
  },
};

export const LIGHTER_PACKAGES = [queryCompilerAsFile, zodInEnglish, expressWithoutBodyParser];
