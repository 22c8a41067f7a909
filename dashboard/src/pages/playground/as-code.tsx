/** The dialog that shows what is set as programs. */
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
        As code
      </Button>
      <Modal opened={isOpen} onClose={close} title="As code" size="xl">
        {isOpen && <Programs request={request()} />}
      </Modal>
    </>
  );
}

function Programs({ request }: { readonly request: Request }) {
  const programs = Object.entries(asCode(request));
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed">
        What is set here, as a program asks for it. Put a key of yours into the environment as <span className="mono">SLUICE_API_KEY</span>:{" "}
        <Anchor component={Link} to={`${addressOf("keys")}?new`} inherit underline="always">
          make a key
        </Anchor>
        .
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
            <Snippet code={code} label={`As ${name}`} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  );
}
