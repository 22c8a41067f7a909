/** Connection test of an upstream, with the values of the form or of a registered model. */
import { Alert, Button, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import { MyModelsTestDocument, type MyModelsTestMutation, type TestCommunityModelInput } from "../../client/generated/graphql.js";
import type { ServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";

type Test = NonNullable<MyModelsTestMutation["testCommunityModel"]>["test"];

/** `form` shows field errors of the test. */
export function Probe({ input, form }: { readonly input: TestCommunityModelInput; readonly form: ServerForm }) {
  const [{ fetching }, test] = useMutation(MyModelsTestDocument);
  const [result, setResult] = useState<Test | null>(null);
  const run = async () => {
    setResult(null);
    const answer = await test({ input });
    if (form.accept(answer)) setResult(answer.data?.testCommunityModel?.test ?? null);
  };
  return (
    <Stack gap="xs" align="flex-start">
      <Button variant="default" onClick={run} loading={fetching}>
        Test connection
      </Button>
      <Text size="xs" c="dimmed">
        Sends one minimal request. At most one test every 30 seconds.
      </Text>
      <div role="status" style={{ width: "100%" }}>
        {form.rest && <Failure error={form.rest} />}
        {result && (
          <Alert color={result.isOk ? "green" : "orange"} variant="light" title={result.isOk ? "Test passed" : "Test failed"}>
            <span className="any-wrap">{result.message}</span>
            {(result.status !== null || result.latencyMs !== null) && (
              <Text size="sm" c="dimmed" mt={4}>
                {[
                  result.status === null ? null : `HTTP ${result.status}`,
                  result.upstreamCode,
                  result.latencyMs === null ? null : `${result.latencyMs} ms`,
                ]
                  .filter((part) => part !== null)
                  .join(", ")}
              </Text>
            )}
          </Alert>
        )}
      </div>
    </Stack>
  );
}
