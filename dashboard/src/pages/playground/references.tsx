/** Reference images: files or URLs. */
import { XMarkIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Button, FileButton, Group, Text, TextInput } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import type { Reference } from "./history-content.js";
import { useObjectUrl } from "./sound.js";

/** Limit of the gateway. */
const REFERENCES_MAX = 10;

export interface ReferencesProps {
  readonly references: readonly Reference[];
  readonly onChange: (references: readonly Reference[]) => void;
  readonly error: string | undefined;
}

export const filesAmong = (references: readonly Reference[]): File[] => references.filter((one) => one instanceof File);
export const addressesAmong = (references: readonly Reference[]): string[] => references.filter((one) => typeof one === "string");

export function References({ references, onChange, error }: ReferencesProps) {
  const [address, setAddress] = useState("");
  const isFull = references.length >= REFERENCES_MAX;
  const canAdd = /^https?:\/\/\S+$/.test(address.trim()) && !isFull;
  const addAddress = () => {
    if (!canAdd) return;
    onChange([...references, address.trim()]);
    setAddress("");
  };
  const keyDown = (event: KeyboardEvent) => {
    // Enter adds the URL instead of submitting the form.
    if (event.key !== "Enter") return;
    event.preventDefault();
    addAddress();
  };
  return (
    <div>
      <Group gap="xs" align="flex-end">
        <FileButton multiple accept="image/*" onChange={(added) => onChange([...references, ...added].slice(0, REFERENCES_MAX))}>
          {(props) => (
            <Button {...props} variant="default" disabled={isFull}>
              Add reference images
            </Button>
          )}
        </FileButton>
        <TextInput
          aria-label="URL of a reference image"
          placeholder="or paste a URL: https://…"
          type="url"
          value={address}
          onChange={({ target }) => setAddress(target.value)}
          onKeyDown={keyDown}
          style={{ flex: "1 1 12rem" }}
          {...(address.trim() !== "" && {
            rightSectionWidth: 56,
            rightSection: (
              <Button size="compact-xs" variant="default" onClick={addAddress} disabled={!canAdd}>
                Add
              </Button>
            ),
          })}
        />
      </Group>
      {error !== undefined && (
        <Text size="xs" c="var(--mantine-color-error)" mt={4} className="any-wrap">
          {error}
        </Text>
      )}
      {references.length > 0 && (
        <div className="references">
          {references.map((reference, index) => (
            <One
              key={`${typeof reference === "string" ? reference : reference.name}-${index}`}
              reference={reference}
              onRemove={() => onChange(references.filter((_, other) => other !== index))}
            />
          ))}
        </div>
      )}
    </div>
  );
}

function One({ reference, onRemove }: { readonly reference: Reference; readonly onRemove: () => void }) {
  const url = useObjectUrl(typeof reference === "string" ? null : reference);
  const name = typeof reference === "string" ? reference : reference.name;
  return (
    <Group gap={4} align={typeof reference === "string" ? "center" : "flex-start"} mt="xs" wrap="nowrap" maw="100%">
      {typeof reference === "string" ? (
        <Text size="sm" className="truncated" title={reference}>
          <bdi>{reference}</bdi>
        </Text>
      ) : (
        url !== null && <img src={url} alt={name} />
      )}
      <ActionIcon variant="default" size={24} onClick={onRemove} aria-label={`Remove ${name}`}>
        <XMarkIcon width={14} />
      </ActionIcon>
    </Group>
  );
}
