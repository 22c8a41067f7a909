/** Texts that are there to be copied. */

import { CheckIcon, ClipboardIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Button, Code, CopyButton, Group, Tooltip } from "@mantine/core";

/** An id or an address with a button that copies it. */
export function Copyable({ value, shown = value, label }: { readonly value: string; readonly shown?: string; readonly label: string }) {
  return (
    <Group gap={4} wrap="nowrap" maw="100%" display="inline-flex">
      <span className="mono any-wrap">{shown}</span>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? "Copied" : `Copy ${label}`}>
            <ActionIcon variant="subtle" color="gray" size={24} onClick={copy} aria-label={copied ? "Copied" : `Copy ${label}`}>
              {copied ? <CheckIcon width={16} /> : <ClipboardIcon width={16} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </Group>
  );
}

/** A command or a program, with a button that copies it. */
export function Snippet({
  code,
  label,
  wraps = false,
  maxHeight,
}: {
  readonly code: string;
  readonly label: string;
  readonly wraps?: boolean;
  /** Of what may be long: the rest is scrolled to. */
  readonly maxHeight?: string;
}) {
  return (
    <div style={{ position: "relative" }}>
      <Code
        block
        style={{ maxHeight, overflow: "auto", ...(wraps && { whiteSpace: "pre-wrap", overflowWrap: "anywhere" }) }}
        tabIndex={0}
        role="region"
        aria-label={label}
        pr={90}
        bg="var(--paper)"
        c="var(--ink)"
        bd="1px solid var(--line)"
      >
        {code}
      </Code>
      <CopyButton value={code}>
        {({ copied, copy }) => (
          <Button size="compact-xs" variant="default" onClick={copy} pos="absolute" top={8} right={8}>
            {copied ? "Copied" : "Copy"}
          </Button>
        )}
      </CopyButton>
    </div>
  );
}
