/** Files of a message. */
import { DocumentIcon, DocumentTextIcon, XMarkIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Group, Text } from "@mantine/core";
import type { Attachment } from "./attachments.js";

export interface AttachmentListProps {
  readonly attachments: readonly Attachment[];
  /** Absent: they cannot be removed. */
  readonly onRemove?: (index: number) => void;
}

export function AttachmentList({ attachments, onRemove }: AttachmentListProps) {
  if (attachments.length === 0) return null;
  return (
    <div className="references">
      {attachments.map((attachment, index) => (
        <Group key={`${attachment.name}-${index}`} gap={4} mt="xs" wrap="nowrap" maw="100%" align="flex-start">
          {attachment.kind === "picture" ? (
            <img src={attachment.url} alt={attachment.name} />
          ) : (
            <Group gap={4} wrap="nowrap" miw={0}>
              {attachment.kind === "pdf" ? (
                <DocumentIcon width={16} style={{ flex: "none" }} />
              ) : (
                <DocumentTextIcon width={16} style={{ flex: "none" }} />
              )}
              <Text size="sm" className="truncated" title={attachment.name}>
                <bdi>{attachment.name}</bdi>
              </Text>
            </Group>
          )}
          {onRemove && (
            <ActionIcon variant="default" size={24} onClick={() => onRemove(index)} aria-label={`Remove ${attachment.name}`}>
              <XMarkIcon width={14} />
            </ActionIcon>
          )}
        </Group>
      ))}
    </div>
  );
}
