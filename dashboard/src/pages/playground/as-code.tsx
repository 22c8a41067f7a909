/** Code for a request in several languages, and the dialog for it. */
import { CodeBracketIcon } from "@heroicons/react/24/outline";
import { Anchor, Button, type ButtonProps, Modal, Stack, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link } from "react-router";
import { addressOf } from "../../shell/pages.js";
import { Snippet } from "../../ui/copy.js";
import { asCode, type Request } from "./snippets.js";

export function AsCode({ request, size = "compact-sm" }: { readonly request: () => Request } & Pick<ButtonProps, "size">) {
  const [isOpen, { open, close }] = useDisclosure();
  return (
    <>
      <Button variant="default" size={size} onClick={open} leftSection={<CodeBracketIcon width={16} />}>
        View code
      </Button>
      <Modal opened={isOpen} onClose={close} title="Code" size="xl">
        {isOpen && <Programs request={request()} intro="Code for the current request." />}
      </Modal>
    </>
  );
}

export function Programs({ request, intro }: { readonly request: Request; readonly intro: string }) {
  const programs = Object.entries(asCode(request));
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed">
        {intro} Set the environment variable <span className="mono">SLUICE_API_KEY</span> to one of your keys.{" "}
        <Anchor component={Link} to={`${addressOf("keys")}?new`} inherit underline="always">
          Create key
        </Anchor>
      </Text>
      <Tabs defaultValue="curl">
        <Tabs.List>
          {programs.map(([name]) => (
            <Tabs.Tab key={name} value={name}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {programs.map(([name, code]) => (
          <Tabs.Panel key={name} value={name} pt="xs">
            <Snippet code={code} label={`${name} code`} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  );
}
