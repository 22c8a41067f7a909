/** Where files are dropped or chosen, and how far each has come. */
import { ArrowUpTrayIcon, XMarkIcon } from "@heroicons/react/24/outline";
import {
  ActionIcon,
  Alert,
  Anchor,
  Button,
  Checkbox,
  FileButton,
  Group,
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
import { dropUpload, retryUpload, startUploads, type Upload, useUploads } from "./uploads.js";

/** What holds files that have no other tag, so that they are listed. */
const USUAL_TAG = "uploads";

/** `children`: below what is uploaded. */
export function UploadPanel({ children }: { readonly children: ReactNode }) {
  const [isListed, setListed] = useState(true);
  const [tags, setTags] = useState<string[]>([USUAL_TAG]);
  const [isStripped, setStripped] = useState(false);
  const [isOver, setOver] = useState(false);
  const isMissingTags = isListed && tags.length === 0;
  const start = (files: readonly File[]) => {
    if (files.length > 0 && !isMissingTags) startUploads(files, { tags: isListed ? tags : [], isStripped: !isListed && isStripped });
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
          aria-label="Drop files here"
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
        <Radio.Group label="Where they go" value={isListed ? "listed" : "link"} onChange={(value) => setListed(value === "listed")}>
          <Stack gap={6} mt={4}>
            <Radio
              value="listed"
              label="In your list"
              description="Kept until you delete them, and shown in the public gallery under their tags."
            />
            <Radio
              value="link"
              label="Only a link"
              description="Listed nowhere, and removed by themselves after 14 days. Whoever knows the link may read."
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
            error={isMissingTags ? "A file without a tag cannot be listed: give it one, or choose “Only a link”." : undefined}
          />
        ) : (
          <Checkbox
            label="Remove what pictures say of where and how they were taken"
            checked={isStripped}
            onChange={({ target }) => setStripped(target.checked)}
          />
        )}
      </Stack>
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
              for (const { key, state } of uploads) if (state === "done") dropUpload(key);
            }}
          >
            Clear what is done
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
          onClick={() => dropUpload(key)}
          aria-label={isUnderWay ? `Cancel ${file.name}` : `Take ${file.name} from this list`}
        >
          <XMarkIcon width={16} />
        </ActionIcon>
      </Group>
      {isUnderWay && (
        <Progress
          value={progress === null ? 100 : percent}
          animated={progress === null}
          size="sm"
          aria-label={progress === null ? `${file.name} is being sent` : `${percent}% of ${file.name} is sent`}
        />
      )}
      {stored && <Copyable value={stored.url} label={`the link to ${file.name}`} />}
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
