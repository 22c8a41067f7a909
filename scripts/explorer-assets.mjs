/**
 * The explorer for browsers: one script and one style sheet, each named by a digest of its content and stored
 * compressed. `manifest.json` has their names.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";

/**
 * @param {string} source the folder with `main.tsx`
 * @param {string} outdir
 */
export async function bundleExplorer(source, outdir) {
  const esbuild = await import("esbuild");
  const { outputFiles } = await esbuild.build({
    entryPoints: { explorer: join(source, "main.tsx") },
    tsconfig: join(source, "tsconfig.json"),
    outdir,
    write: false,
    bundle: true,
    minify: true,
    platform: "browser",
    format: "esm",
    target: ["es2022", "chrome105", "firefox121", "safari16"],
    jsx: "automatic",
    loader: { ".graphql": "text" },
    alias: { "react-style-singleton": join(source, "no-style-element.ts") },
    define: { "process.env.NODE_ENV": '"production"' },
    legalComments: "none",
    plugins: [withoutTypefaces],
    logLevel: "warning",
  });
  await esbuild.stop();
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  const manifest = {};
  for (const { path, contents } of outputFiles) {
    const kind = path.endsWith(".css") ? "style" : "script";
    const digest = createHash("sha256").update(contents).digest();
    const name = `explorer-${digest.toString("hex").slice(0, 16)}.${kind === "style" ? "css" : "js"}`;
    manifest[kind] = { name, integrity: `sha256-${digest.toString("base64")}` };
    writeFileSync(join(outdir, name), contents);
    writeFileSync(join(outdir, `${name}.br`), await promisify(brotliCompress)(contents));
    writeFileSync(join(outdir, `${name}.gz`), await promisify(gzip)(contents, { level: 9 }));
  }
  writeFileSync(join(outdir, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** GraphiQL's style sheet holds its typefaces, four fifths of it. The system's own are shown instead. */
const withoutTypefaces = {
  name: "without typefaces",
  setup({ onLoad }) {
    onLoad({ filter: /graphiql[\\/]dist[\\/]style\.css$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(/@font-face\s*\{[^}]*\}/g, ""),
      loader: "css",
    }));
  },
};
