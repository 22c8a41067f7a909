/** What is shown instead of what has not come, did not come, or is not there: each says what to do. */
import { Alert, Button, Center, Group, Skeleton, Stack, Text } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import type { CombinedError } from "urql";
import type { Answer } from "../client/answer.js";
import { onReconnect } from "../client/connection.js";

export function Loading({ rows = 3, height = 20 }: { readonly rows?: number; readonly height?: number }) {
  return (
    <Stack gap="sm" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={row} height={height} />
      ))}
    </Stack>
  );
}

export function Empty({ title, children, action }: { readonly title: string; readonly children?: ReactNode; readonly action?: ReactNode }) {
  return (
    <Center py="xl" px="md">
      <Stack gap="xs" align="center" maw="30rem">
        <Text fw={600} ta="center">
          {title}
        </Text>
        {children !== undefined && (
          <Text c="dimmed" ta="center">
            {children}
          </Text>
        )}
        {action}
      </Stack>
    </Center>
  );
}

/** What went wrong, in the gateway's own words, and what can be done. */
export function Failure({ error, retry }: { readonly error: CombinedError; readonly retry?: () => void }) {
  const isAway = error.networkError !== undefined;
  const tryAgain = useRef(retry);
  tryAgain.current = retry;
  useEffect(() => (isAway ? onReconnect(() => tryAgain.current?.()) : undefined), [isAway]);
  const [first] = error.graphQLErrors;
  const message = isAway
    ? `The gateway cannot be reached. ${retry ? "It is tried again as soon as there is a connection." : "Try again when there is a connection."}`
    : first?.message;
  return (
    <Alert color="red" variant="light" role="alert" title={isAway ? "No connection" : "This did not work"}>
      <Group justify="space-between" align="flex-start">
        <Text size="sm" className="any-wrap">
          {message ?? error.message}
        </Text>
        {retry && (
          <Button size="compact-sm" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}

/**
 * The answer of a query: what was shown before stays while it is asked anew. An id of nothing, as in an address that was mistyped, is no
 * failure: what was asked for is null, and the page says so.
 */
export function QueryView<Data extends object>({
  answer,
  loading = <Loading />,
  frame = (shown) => shown,
  children,
}: {
  readonly answer: Answer<Data>;
  readonly loading?: ReactNode;
  /** What stands around `loading` and a failure, where the page's heading is not known before its data. */
  readonly frame?: (shown: ReactNode) => ReactNode;
  readonly children: (data: Data) => ReactNode;
}) {
  const { data, error, fetching, refetch } = answer;
  if (data && error && isOfNothing(error)) return children(data);
  const failure = error && !fetching && <Failure error={error} retry={refetch} />;
  // Where all that was asked for is missing nothing can be shown of it, not even that there is none.
  const isMissing = !data || (error !== undefined && Object.values(data).every((value) => value === null || typeof value === "string"));
  if (isMissing) return frame(failure || loading);
  return (
    <>
      {failure}
      {children(data)}
    </>
  );
}

/** Whether all that went wrong is that the ids asked for are of nothing. */
function isOfNothing({ networkError, graphQLErrors }: CombinedError): boolean {
  return (
    !networkError &&
    graphQLErrors.every(
      ({ path = [], extensions: { code, param } }) =>
        path.length === (path[0] === "me" ? 2 : 1) && (code === "NOT_FOUND" || (code === "BAD_REQUEST" && param === "id")),
    )
  );
}
