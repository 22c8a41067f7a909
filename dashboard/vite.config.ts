import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const file = (path: string) => new URL(path, import.meta.url).pathname;

/** Removes Mantine's ScrollArea, which its table imports, and with it a positioning library: 20 kB. Tables scroll in `Wide`. */
const tablesWithoutScrollArea: Plugin = {
  name: "tables-without-scroll-area",
  enforce: "pre",
  resolveId: (source, importer) =>
    source.endsWith("/ScrollArea.mjs") && importer?.endsWith("/TableScrollContainer.mjs") ? file("src/ui/no-scroll-area.ts") : null,
};

export default defineConfig({
  plugins: [tablesWithoutScrollArea, react()],
  // The gateway may serve its pages below any path, so files refer to each other by relative paths.
  base: "./",
  resolve: {
    dedupe: ["react", "react-dom", "graphql"],
    alias: [
      { find: /^@0no-co\/graphql\.web$/, replacement: file("src/client/graphql-web-stub.ts") },
      // The package exports its development build, with warnings, even to production builds.
      { find: /^react-router$/, replacement: file("../node_modules/react-router/dist/production/index.mjs") },
    ],
  },
  build: {
    manifest: "manifest.json",
    emptyOutDir: false,
    target: ["es2022", "chrome111", "firefox121", "safari16.4"],
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    rolldownOptions: { input: { early: file("src/early.ts"), main: file("src/main.tsx") } },
  },
});
