/** Text with a copy button. */

import { CheckIcon, ClipboardIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Button, Code, CopyButton, Group, Tooltip } from "@mantine/core";

/** Shows an id or a URL on one line. */
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

/** Shows code in a block. */
export function Snippet({
  code,
  label,
  wraps = false,
  maxHeight,
}: {
  readonly code: string;
  readonly label: string;
  readonly wraps?: boolean;
  /** CSS length. Longer code scrolls. */
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
