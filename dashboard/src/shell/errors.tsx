/** Pages that are not there, or that broke. */
import { Anchor, Button, Code, Stack, Text } from "@mantine/core";
import { Link, useRouteError } from "react-router";
import { Page } from "../ui/page.js";
import { DASHBOARD } from "./pages.js";

export function NotFound() {
  return (
    <Page title="There is no such page">
      <Text>
        The address may be misspelt, or what it led to is gone.{" "}
        <Anchor component={Link} to={DASHBOARD}>
          Go to the overview
        </Anchor>
      </Text>
    </Page>
  );
}

export function Crashed() {
  const error = useRouteError();
  return (
    <Stack p="md" role="alert">
      <Text fw={600}>This page broke</Text>
      <Text c="dimmed">It may be of an older version than the gateway. Loading it again gets the newest one.</Text>
      <Code block>{error instanceof Error ? error.message : String(error)}</Code>
      <Button w="fit-content" onClick={() => location.reload()}>
        Load the page again
      </Button>
    </Stack>
  );
}
