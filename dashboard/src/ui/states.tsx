/** Placeholders for data that is loading, has failed or is empty. */
import { Alert, Button, Center, Group, Skeleton, Stack, Text } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import type { CombinedError } from "urql";
import type { Answer } from "../client/answer.js";
import { onReconnect } from "../client/connection.js";
import { isSessionOver, isUnreachable } from "../client/graphql.js";

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

/** Shows the gateway's error message. Connection errors call `retry` as soon as the gateway is reachable again. */
export function Failure({ error, retry }: { readonly error: CombinedError; readonly retry?: () => void }) {
  const isAway = error.networkError !== undefined;
  const isRetried = isUnreachable(error);
  const tryAgain = useRef(retry);
  tryAgain.current = retry;
  useEffect(() => (isRetried ? onReconnect(() => tryAgain.current?.()) : undefined), [isRetried]);
  const [first] = error.graphQLErrors;
  const message = isAway
    ? `Cannot reach the gateway. ${retry ? "Retrying as soon as the connection is back." : "Try again when the connection is back."}`
    : isSessionOver(error)
      ? "Your session has ended. Sign in again."
      : first?.message;
  return (
    <Alert color="red" variant="light" role="alert" title={isAway ? "No connection" : "Request failed"}>
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
 * Renders the result of a query. Earlier data stays visible during a refetch. An unknown id, as in a mistyped address, is no failure:
 * `children` gets null for it and says that it was not found.
 */
export function QueryView<Data extends object>({
  answer,
  loading = <Loading />,
  frame = (content) => content,
  children,
}: {
  readonly answer: Answer<Data>;
  readonly loading?: ReactNode;
  /** Wraps `loading` and failures, for pages whose heading depends on the data. */
  readonly frame?: (content: ReactNode) => ReactNode;
  readonly children: (data: Data) => ReactNode;
}) {
  const { data, error, fetching, refetch } = answer;
  if (data && error && isNotFound(error)) return children(data);
  const failure = error && !fetching && <Failure error={error} retry={refetch} />;
  // When all fields are missing because of an error, `children` would wrongly say that nothing was found.
  const isMissing = !data || (error !== undefined && Object.values(data).every((value) => value === null || typeof value === "string"));
  if (isMissing) return frame(failure || loading);
  return (
    <>
      {failure}
      {children(data)}
    </>
  );
}

/** Whether every error says that a requested id does not exist. */
function isNotFound({ networkError, graphQLErrors }: CombinedError): boolean {
  return (
    !networkError &&
    graphQLErrors.every(
      ({ path = [], extensions: { code, param } }) =>
        path.length === (path[0] === "me" ? 2 : 1) && (code === "NOT_FOUND" || (code === "BAD_REQUEST" && param === "id")),
    )
  );
}
