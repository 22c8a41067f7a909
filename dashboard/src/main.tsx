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
import { later } from "./ui/later.js";
import "./look.css";

// Dialogs keep the page behind them from scrolling by a style element of their own.
setNonce(NONCE);

// Nothing is told in the first moment: what is seen comes first.
const Toasts = later(
  async () => {
    await new Promise((resolve) => setTimeout(resolve, TOASTS_AFTER_MS));
    return { default: (await import("@mantine/notifications")).Notifications };
  },
  () => null,
);
const TOASTS_AFTER_MS = 1_000;

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
