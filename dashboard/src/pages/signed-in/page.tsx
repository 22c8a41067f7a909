/** Target of the sign-in that `SignInAgain` opens in a new window, which closes itself. */
import { Text } from "@mantine/core";
import { useEffect } from "react";
import { Page } from "../../ui/page.js";

export function Component() {
  useEffect(() => window.close(), []);
  return (
    <Page title="You are signed in">
      <Text>Close this window and continue in the other one. Your input is still there.</Text>
    </Page>
  );
}
