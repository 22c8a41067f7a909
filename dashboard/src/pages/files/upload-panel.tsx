/** Upload of files by drag and drop or by a file dialog, with progress. */
import { ArrowUpTrayIcon, XMarkIcon } from "@heroicons/react/24/outline";
import {
  ActionIcon,
  Alert,
  Anchor,
  Button,
  Checkbox,
  FileButton,
  Group,
  Modal,
  Progress,
  Radio,
  SimpleGrid,
  Stack,
  TagsInput,
  Text,
} from "@mantine/core";
import { type DragEvent, type ReactNode, useState } from "react";
import { Link } from "react-router";
import { addressOf } from "../../shell/pages.js";
import { formatBytes } from "../../ui/amounts.js";
import { Copyable } from "../../ui/copy.js";
import { removeUpload, retryUpload, startUploads, type Upload, useUploads } from "./uploads.js";

/** Only files with a tag are listed. */
const DEFAULT_TAG = "uploads";

/** `children` is shown below the uploads. */
export function UploadPanel({ children }: { readonly children: ReactNode }) {
  const [isListed, setListed] = useState(false);
  const [toConfirm, setToConfirm] = useState<readonly File[] | null>(null);
  const [tags, setTags] = useState<string[]>([DEFAULT_TAG]);
  const [isStripped, setStripped] = useState(false);
  const [isOver, setOver] = useState(false);
  const isMissingTags = isListed && tags.length === 0;
  const start = (files: readonly File[]) => {
    if (files.length === 0 || isMissingTags) return;
    if (isListed) setToConfirm(files);
    else startUploads(files, { tags: [], isStripped });
  };
  const publish = () => {
    if (toConfirm) startUploads(toConfirm, { tags, isStripped: false });
    setToConfirm(null);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    start([...event.dataTransfer.files]);
  };
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <Stack gap="sm">
        <section
          className="file-drop"
          aria-label="Drop zone"
          data-over={isOver || undefined}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={drop}
        >
          <Stack align="center" gap="xs">
            <Group justify="center" gap="xs">
              <FileButton multiple onChange={start} disabled={isMissingTags} inputProps={{ "aria-label": "Files to upload" }}>
                {(props) => (
                  <Button {...props} leftSection={<ArrowUpTrayIcon width={16} aria-hidden />}>
                    Choose files
                  </Button>
                )}
              </FileButton>
              <Text c="dimmed" size="sm">
                or drop them here
              </Text>
            </Group>
          </Stack>
        </section>
        <Uploads />
        {children}
      </Stack>
      <Stack gap="sm">
        <Radio.Group label="Visibility" value={isListed ? "listed" : "link"} onChange={(value) => setListed(value === "listed")}>
          <Stack gap={6} mt={4}>
            <Radio
              value="link"
              label="Only a link"
              description="Not listed anywhere. Anyone with the link can read the file. It expires after 14 days."
            />
            <Radio
              value="listed"
              label="In the public gallery"
              description="Everyone can find these files by their tags, without an account. They are kept until you delete them."
            />
          </Stack>
        </Radio.Group>
        {isListed ? (
          <TagsInput
            label="Tags"
            description="At least one. Press Enter after each."
            value={tags}
            onChange={setTags}
            maxTags={8}
            splitChars={[",", " "]}
            error={isMissingTags ? "Add a tag, or select “Only a link”." : undefined}
          />
        ) : (
          <Checkbox
            label="Remove location and camera metadata from images"
            checked={isStripped}
            onChange={({ target }) => setStripped(target.checked)}
          />
        )}
      </Stack>
      <Modal opened={toConfirm !== null} onClose={() => setToConfirm(null)} title="Publish in the public gallery?" centered>
        <Stack>
          <Text>
            Everyone can find and read {toConfirm?.length === 1 ? "this file" : `these ${toConfirm?.length ?? 0} files`}, without an
            account.
          </Text>
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setToConfirm(null)}>
              Cancel
            </Button>
            <Button onClick={publish}>Publish</Button>
          </Group>
        </Stack>
      </Modal>
    </SimpleGrid>
  );
}

function Uploads() {
  const uploads = useUploads();
  if (uploads.length === 0) return <div role="status" />;
  const done = uploads.filter(({ state }) => state === "done").length;
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="xs">
        <Text size="sm" fw={600} role="status">
          {done} of {uploads.length} uploaded
        </Text>
        {done > 0 && (
          <Button
            size="compact-xs"
            variant="subtle"
            onClick={() => {
              for (const { key, state } of uploads) if (state === "done") removeUpload(key);
            }}
          >
            Clear completed
          </Button>
        )}
      </Group>
      {uploads.map((upload) => (
        <UploadRow key={upload.key} upload={upload} />
      ))}
    </Stack>
  );
}

function UploadRow({ upload: { key, file, state, progress, problem, stored } }: { readonly upload: Upload }) {
  const isUnderWay = state === "waiting" || state === "sending";
  const percent = Math.round((progress ?? 0) * 100);
  return (
    <div>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" className="any-wrap" lineClamp={2} title={file.name}>
          {stored ? (
            <Anchor component={Link} to={`${addressOf("files")}/${encodeURIComponent(stored.id)}`} size="sm">
              <bdi>{file.name}</bdi>
            </Anchor>
          ) : (
            <bdi>{file.name}</bdi>
          )}{" "}
          <span className="soft">{formatBytes(file.size)}</span>
        </Text>
        <ActionIcon
          variant="subtle"
          color="gray"
          size={24}
          onClick={() => removeUpload(key)}
          aria-label={isUnderWay ? `Cancel ${file.name}` : `Remove ${file.name}`}
        >
          <XMarkIcon width={16} />
        </ActionIcon>
      </Group>
      {isUnderWay && (
        <Progress
          value={progress === null ? 100 : percent}
          animated={progress === null}
          size="sm"
          aria-label={progress === null ? `Uploading ${file.name}` : `Uploading ${file.name}: ${percent}%`}
        />
      )}
      {stored && <Copyable value={stored.url} label={`link to ${file.name}`} />}
      {state === "failed" && (
        <Alert color="red" variant="light" role="alert" py="xs">
          <Group justify="space-between">
            <Text size="sm" className="any-wrap">
              {problem}
            </Text>
            <Button size="compact-sm" variant="default" onClick={() => retryUpload(key)}>
              Try again
            </Button>
          </Group>
        </Alert>
      )}
    </div>
  );
}
