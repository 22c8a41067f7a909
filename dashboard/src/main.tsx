import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import { setNonce } from "get-nonce";
import { Suspense } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router";
import { Provider } from "urql";
import { graph } from "./client/graphql.js";
import { NONCE, ROOT } from "./client/place.js";
import { router } from "./router.js";
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

createRoot(ROOT).render(
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
  </MantineProvider>,
);
