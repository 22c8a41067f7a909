/** Where somebody is led who has signed in again beside a form that they were filling in. */
import { Text } from "@mantine/core";
import { useEffect } from "react";
import { Page } from "../../ui/page.js";

export function Component() {
  useEffect(() => window.close(), []);
  return (
    <Page title="You are signed in">
      <Text>Close this window and go on where you were: what you have typed is still there.</Text>
    </Page>
  );
}
