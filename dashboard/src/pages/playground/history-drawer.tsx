/** List of earlier generations of one type, stored in this browser. */
import { ClockIcon, TrashIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Anchor, Button, Drawer, Group, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link } from "react-router";
import { Confirm } from "../../ui/confirm.js";
import { Empty } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { ITEMS_MAX, type useHistory } from "./history.js";

export interface HistoryDrawerProps {
  readonly history: ReturnType<typeof useHistory>;
  readonly current: string | null;
  /** Query parameter of the address that has the id of the shown item. */
  readonly parameter: string;
  /** Plural, such as "conversations". */
  readonly things: string;
  readonly onDeleted: (ids: readonly string[]) => void;
}

export function HistoryDrawer({ history: { items, refresh, remove }, current, parameter, things, onDeleted }: HistoryDrawerProps) {
  const [isOpen, { open, close }] = useDisclosure();
  const drop = async (ids: readonly string[]) => {
    await remove(ids);
    onDeleted(ids);
    return undefined;
  };
  return (
    <>
      <Button
        variant="default"
        size="compact-sm"
        leftSection={<ClockIcon width={16} />}
        onClick={() => {
          void refresh();
          open();
        }}
      >
        History
      </Button>
      <Drawer opened={isOpen} onClose={close} title="History" position="right" size="sm">
        <Stack>
          <Text size="sm" c="dimmed">
            Stored in this browser only. The newest {ITEMS_MAX} are kept.
          </Text>
          {items.length === 0 ? (
            <Empty title={`No ${things} yet`}>Your prompts and their results are listed here.</Empty>
          ) : (
            <>
              <Stack component="ul" gap={2} m={0} p={0} style={{ listStyle: "none" }}>
                {items.map(({ id, title, at }) => (
                  <Group key={id} component="li" wrap="nowrap" justify="space-between" gap="xs">
                    <Stack gap={0} miw={0}>
                      <Anchor
                        component={Link}
                        to={`?${parameter}=${id}`}
                        onClick={close}
                        aria-current={id === current ? "true" : undefined}
                        title={title}
                        className="truncated"
                      >
                        <bdi>{title}</bdi>
                      </Anchor>
                      <Text size="xs" c="dimmed">
                        <When value={new Date(at).toISOString()} />
                      </Text>
                    </Stack>
                    <ActionIcon
                      variant="subtle"
                      color="gray"
                      size={28}
                      aria-label={`Delete ${title.slice(0, 60)}`}
                      onClick={() => void drop([id])}
                    >
                      <TrashIcon width={16} />
                    </ActionIcon>
                  </Group>
                ))}
              </Stack>
              <Confirm
                title={`Delete all ${things}?`}
                action="Delete permanently"
                onConfirm={() => drop(items.map(({ id }) => id))}
                trigger={(ask) => (
                  <Button variant="default" onClick={ask}>
                    Delete all
                  </Button>
                )}
              >
                The {things} are stored in this browser only and cannot be restored.
              </Confirm>
            </>
          )}
        </Stack>
      </Drawer>
    </>
  );
}
