import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import "./early.js";
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import { setNonce } from "get-nonce";
import { Suspense } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router";
import { Provider } from "urql";
import { ShellDocument } from "./client/generated/graphql.js";
import { graph, prefetch, prefetched } from "./client/graphql.js";
import { NONCE, ROOT } from "./client/place.js";
import { router, routerReady } from "./router.js";
import { cssVariablesResolver, theme } from "./theme.js";
import { lazyWithRetry } from "./ui/lazy-with-retry.js";
import { firstToast } from "./ui/toast.js";
import "./look.css";

// Dialogs add a style element that stops the page behind them from scrolling.
setNonce(NONCE);

const Toasts = lazyWithRetry(
  async () => {
    await firstToast;
    return { default: (await import("@mantine/notifications")).Notifications };
  },
  () => null,
);

/**
 * Longest wait of the first render for the code and the data of the page, in milliseconds. With both there, the page is rendered once, and no
 * placeholder is seen; the outline of the frame is on the screen meanwhile.
 */
const FIRST_RENDER_MS_MAX = 300;

const content = (
  <MantineProvider
    theme={theme}
    cssVariablesResolver={cssVariablesResolver}
    defaultColorScheme="auto"
    colorSchemeManager={localStorageColorSchemeManager({ key: "sluice-color-scheme" })}
    getStyleNonce={() => NONCE}
  >
    <Suspense>
      <Toasts position="bottom-right" limit={4} />
    </Suspense>
    <Provider value={graph}>
      <RouterProvider router={router} />
    </Provider>
  </MantineProvider>
);

prefetch(ShellDocument, {});
const timer = new Promise((resolve) => setTimeout(resolve, FIRST_RENDER_MS_MAX));
// Not awaited: the code of pages needs this module to be complete.
void Promise.race([routerReady().then(prefetched), timer]).then(() => createRoot(ROOT).render(content));
