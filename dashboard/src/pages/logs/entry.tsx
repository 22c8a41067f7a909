/** One request: its error with what to do about it, and where it came from. */
import { Alert, Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { Link } from "react-router";
import type { LogEntryFragment } from "../../client/generated/graphql.js";
import { addressOf, addressOfModel } from "../../shell/pages.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { Fact, Facts } from "../../ui/facts.js";
import { Card } from "../../ui/page.js";
import { When } from "../../ui/when.js";
import { KINDS } from "../playground/kinds.js";
import { adviceFor } from "./advice.js";
import { StatusBadge } from "./status-badge.js";

/** Status, error, and the way to try the model again. */
export function ErrorCard({ entry }: { readonly entry: LogEntryFragment }) {
  const { status, code, message, leftOut, requestId } = entry;
  return (
    <>
      <Group justify="space-between">
        <StatusBadge status={status} size="lg" />
        <TryInPlayground entry={entry} />
      </Group>
      {requestId !== null && <Copyable value={requestId} label="request ID" />}
      {code !== null && (
        <Alert color={status < 500 ? "orange" : "red"} variant="light" title={code}>
          <Stack gap="xs">
            <Text size="sm" className="any-wrap">
              {message}
            </Text>
            <Text size="sm">{adviceFor(code)}</Text>
            {leftOut > 0 && (
              <Text size="sm" c="dimmed">
                {leftOut.toLocaleString("en")} more requests failed with this code at about this time. They are counted here and not listed.
              </Text>
            )}
            {code === "INSUFFICIENT_BALANCE" && (
              <Anchor component={Link} size="sm" to={addressOf("credits")}>
                Get credits
              </Anchor>
            )}
          </Stack>
        </Alert>
      )}
    </>
  );
}

/** `account`: shown to operators. */
export function RequestCard({ entry, account }: { readonly entry: LogEntryFragment; readonly account?: string }) {
  const { apiKeyId, apiKeyName, generationId, modelId, model, route, operation, timestamp, milliseconds } = entry;
  return (
    <Card title="Details">
      <Facts>
        <Fact label="Time">
          <When value={timestamp} /> <span className="soft">({new Date(timestamp).toLocaleString("en")})</span>
        </Fact>
        <Fact label="Duration">{milliseconds.toLocaleString("en")} ms</Fact>
        <Fact label="Cost">
          <Credits value={entry.cost} unit />
        </Fact>
        {entry.inputTokens + entry.outputTokens > 0 && (
          <Fact label="Tokens">
            {entry.inputTokens.toLocaleString("en")} input, {entry.outputTokens.toLocaleString("en")} output
          </Fact>
        )}
        <Fact label="Model">
          {model ? (
            <Anchor component={Link} fz="inherit" to={addressOfModel(model.restId)}>
              {modelId}
            </Anchor>
          ) : (
            <bdi>{modelId ?? "Not known: the request was refused before it was read."}</bdi>
          )}
        </Fact>
        {route !== null && <Fact label="Endpoint">{operation === null ? route : `${route} (${operation})`}</Fact>}
        <Fact label="Key">{apiKeyId === null ? "None (signed-in session)" : <bdi>{apiKeyName ?? apiKeyId}</bdi>}</Fact>
        {generationId !== null && (
          <Fact label="Generation">
            <Copyable value={generationId} label="generation ID" />
          </Fact>
        )}
        {account !== undefined && (
          <Fact label="Account">
            <Anchor component={Link} fz="inherit" to={`${addressOf("operator")}/accounts/${encodeURIComponent(account)}`}>
              {account}
            </Anchor>
          </Fact>
        )}
      </Facts>
    </Card>
  );
}

function TryInPlayground({ entry: { model, modelId } }: { readonly entry: LogEntryFragment }) {
  const kind = KINDS.find(({ modality }) => modality === model?.modality);
  if (!kind || modelId === null) return null;
  const path = kind.modality === "TEXT" ? "playground" : `playground/${kind.name}`;
  return (
    <Button component={Link} size="xs" variant="default" to={`${addressOf(path)}?model=${encodeURIComponent(modelId)}`}>
      Try in playground
    </Button>
  );
}
