/** Notice for accounts without permission to publish. */
import { Alert, Text } from "@mantine/core";
import { Copyable } from "../../ui/copy.js";

export function HowToPublish({ handle }: { readonly handle: string }) {
  return (
    <Alert color="blue" variant="light" title="Your models and agents are private">
      <Text size="sm">
        You can create models and agents and call them with your keys. To make them public, an operator must allow your account to publish:
        send them your handle, <Copyable value={handle} label="handle" />. They find your account under Operator, Accounts. You can then
        publish what you have already created.
      </Text>
    </Alert>
  );
}
