/** Pages for unknown addresses and for errors while rendering. */
import { Anchor, Button, Code, Stack, Text, Title } from "@mantine/core";
import { Link, useLocation, useRouteError } from "react-router";
import { Page } from "../ui/page.js";
import { MissingCode, PageNotLoaded } from "./missing-code.js";
import { DASHBOARD } from "./pages.js";

export function NotFound() {
  return (
    <Page title="Page not found">
      <Text>
        Check the address for typos. The page may also have been removed.{" "}
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
        Something went wrong
      </Title>
      <Text>This page failed because of a bug in the dashboard. Reload it. If it fails again, report this message to the operator:</Text>
      <Code block>{error instanceof Error ? error.message : String(error)}</Code>
      <Button w="fit-content" onClick={() => location.reload()}>
        Reload page
      </Button>
    </Stack>
  );
}
