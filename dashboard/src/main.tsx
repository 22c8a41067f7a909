import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import "@mantine/core/styles.css";
import { Notifications } from "@mantine/notifications";
import "@mantine/notifications/styles.css";
import { setNonce } from "get-nonce";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router";
import { Provider } from "urql";
import { graph } from "./client/graphql.js";
import { NONCE, ROOT } from "./client/place.js";
import { router } from "./router.js";
import { cssVariablesResolver, theme } from "./theme.js";
import "./look.css";

// Dialogs keep the page behind them from scrolling by a style element of their own.
setNonce(NONCE);

createRoot(ROOT).render(
  <MantineProvider
    theme={theme}
    cssVariablesResolver={cssVariablesResolver}
    defaultColorScheme="auto"
    colorSchemeManager={localStorageColorSchemeManager({ key: "sluice-color-scheme" })}
    getStyleNonce={() => NONCE}
  >
    <Notifications position="bottom-right" limit={4} />
    <Provider value={graph}>
      <RouterProvider router={router} />
    </Provider>
  </MantineProvider>,
);
