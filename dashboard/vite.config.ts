import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // Wherever the gateway shows its pages: files find each other by where they are themselves.
  base: "./",
  resolve: { dedupe: ["react", "react-dom", "graphql"] },
  build: {
    manifest: "manifest.json",
    emptyOutDir: false,
    target: ["es2022", "chrome111", "firefox121", "safari16.4"],
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    rolldownOptions: { input: { main: new URL("src/main.tsx", import.meta.url).pathname } },
  },
});
