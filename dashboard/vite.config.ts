import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const file = (path: string) => new URL(path, import.meta.url).pathname;

/** Mantine's table brings a scrolled region along, and that a library that places menus: 20 kB for what `Wide` does without. */
const tablesWithoutScrollArea: Plugin = {
  name: "tables-without-scroll-area",
  enforce: "pre",
  resolveId: (source, importer) =>
    source.endsWith("/ScrollArea.mjs") && importer?.endsWith("/TableScrollContainer.mjs") ? file("src/ui/no-scroll-area.ts") : null,
};

export default defineConfig({
  plugins: [tablesWithoutScrollArea, react()],
  // Wherever the gateway shows its pages: files find each other by where they are themselves.
  base: "./",
  resolve: {
    dedupe: ["react", "react-dom", "graphql"],
    alias: [
      { find: /^@0no-co\/graphql\.web$/, replacement: file("src/client/graphql-web-stub.ts") },
      // What it exports is the build with warnings for those who develop, also to those who build for production.
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
    rolldownOptions: { input: { main: file("src/main.tsx") } },
  },
});
