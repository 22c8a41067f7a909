/** What somebody does who wants others to call what they make here. */
import { Alert, Text } from "@mantine/core";
import { Copyable } from "../../ui/copy.js";

export function HowToPublish({ handle }: { readonly handle: string }) {
  return (
    <Alert color="blue" variant="light" title="What you make here is yours alone for now">
      <Text size="sm">
        You can make models and agents and call them with your keys. For everybody at this gateway to call them, an operator must allow your
        account to publish: send them your handle, <Copyable value={handle} label="your handle" />. They find you under Operator, Accounts.
        Nothing that you made has to be made again.
      </Text>
    </Alert>
  );
}
