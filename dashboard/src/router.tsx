/**
 * Routes of the dashboard. `page.tsx` of each page exports its `Component` and, optionally, `start`, which starts the page's queries. Both
 * load when the page is opened.
 */
import type { ReactNode } from "react";
import { createBrowserRouter, type RouteObject } from "react-router";
import { BASE } from "./client/place.js";
import { Crashed, NotFound } from "./shell/errors.js";
import { MissingCode } from "./shell/missing-code.js";
import { Shell } from "./shell/shell.js";
import { Loading } from "./ui/states.js";

const PAGES: readonly { readonly paths: readonly string[]; readonly load: () => Promise<PageModule> }[] = [
  { paths: ["/", "/dashboard"], load: () => import("./pages/overview/page.js") },
  { paths: ["/dashboard/keys", "/dashboard/keys/:id"], load: () => import("./pages/keys/page.js") },
  { paths: ["/dashboard/apps", "/dashboard/apps/:id"], load: () => import("./pages/apps/page.js") },
  {
    paths: [
      ...["/dashboard/operator", "/dashboard/operator/accounts", "/dashboard/operator/accounts/:id"],
      ...["/dashboard/operator/audit", "/dashboard/operator/audit/:id", "/dashboard/operator/spend"],
      ...["/dashboard/operator/routes", "/dashboard/operator/sales", "/dashboard/operator/earnings"],
    ],
    load: () => import("./pages/operator/page.js"),
  },
  { paths: ["/dashboard/files", "/dashboard/files/:id"], load: () => import("./pages/files/page.js") },
  { paths: ["/dashboard/playground/:kind?"], load: () => import("./pages/playground/page.js") },
  { paths: ["/dashboard/webhooks", "/dashboard/webhooks/:id"], load: () => import("./pages/webhooks/page.js") },
  { paths: ["/dashboard/alerts"], load: () => import("./pages/alerts/page.js") },
  { paths: ["/dashboard/account", "/dashboard/account/:part"], load: () => import("./pages/account/page.js") },
  { paths: ["/dashboard/models", "/dashboard/models/*"], load: () => import("./pages/models/page.js") },
  { paths: ["/dashboard/usage", "/dashboard/usage/:id"], load: () => import("./pages/usage/page.js") },
  {
    paths: ["/dashboard/logs", "/dashboard/logs/:id", "/dashboard/operator/logs", "/dashboard/operator/logs/:id"],
    load: () => import("./pages/logs/page.js"),
  },
  { paths: ["/dashboard/credits"], load: () => import("./pages/credits/page.js") },
  { paths: ["/dashboard/my-models", "/dashboard/my-models/:id"], load: () => import("./pages/my-models/page.js") },
  { paths: ["/dashboard/signed-in"], load: () => import("./pages/signed-in/page.js") },
];

interface PageModule {
  readonly Component: () => ReactNode;
  /** Starts the page's queries and does not wait for them. */
  readonly start?: (request: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }) => unknown;
}

function routesOf({ paths, load }: (typeof PAGES)[number]): RouteObject[] {
  return paths.map((path) => ({
    path,
    lazy: async () => {
      const { Component, start } = await load().catch((cause: unknown) => {
        throw new MissingCode("The code of the page did not load.", { cause });
      });
      return {
        Component,
        loader: ({ params, request }: { params: Readonly<Record<string, string | undefined>>; request: Request }) => {
          start?.({ params, url: new URL(request.url) });
          return null;
        },
        // Pages read filters from the address by themselves.
        shouldRevalidate: () => false,
      };
    },
  }));
}

export const router = createBrowserRouter(
  [
    {
      Component: Shell,
      ErrorBoundary: Crashed,
      HydrateFallback: () => null,
      children: [
        {
          ErrorBoundary: Crashed,
          HydrateFallback: () => <Loading rows={6} />,
          children: [...PAGES.flatMap(routesOf), { path: "*", Component: NotFound }],
        },
      ],
    },
  ],
  { basename: BASE === "" ? "/" : BASE },
);

/** Resolves when the code of the first page is there, or has failed to load, and its queries have started. */
export function routerReady(): Promise<void> {
  return new Promise((resolve) => {
    if (router.state.initialized) return resolve();
    const stop = router.subscribe(({ initialized }) => {
      if (!initialized) return;
      stop();
      resolve();
    });
  });
}
