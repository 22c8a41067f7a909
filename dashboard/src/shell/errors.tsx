/** Pages that are not there, or that broke. */
import { Anchor, Button, Code, Stack, Text, Title } from "@mantine/core";
import { Link, useLocation, useRouteError } from "react-router";
import { Page } from "../ui/page.js";
import { MissingCode, PageNotLoaded } from "./missing-code.js";
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
  const { pathname } = useLocation();
  if (error instanceof MissingCode) return <PageNotLoaded key={pathname} />;
  return (
    <Stack p="md" role="alert">
      <Title order={1} size="h2">
        This page broke
      </Title>
      <Text>
        That is a defect of the dashboard. Load the page again; if it breaks again, whoever runs the gateway wants to know what it says:
      </Text>
      <Code block>{error instanceof Error ? error.message : String(error)}</Code>
      <Button w="fit-content" onClick={() => location.reload()}>
        Load the page again
      </Button>
    </Stack>
  );
}
