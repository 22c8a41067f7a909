/** Header of a page and title of its tab. The heading takes the focus after a navigation, for screen readers. */
import { Anchor, Breadcrumbs, Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import { Link, useLocation } from "react-router";

export interface PageProps {
  readonly title: ReactNode;
  /** Title of the tab, needed where `title` is no string. */
  readonly tabTitle?: string;
  readonly description?: ReactNode;
  readonly above?: readonly { readonly label: string; readonly to: string }[];
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, tabTitle, description, above = [], actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { pathname } = useLocation();
  const name = tabTitle ?? (typeof title === "string" ? title : "");
  useEffect(() => {
    document.title = name === "" ? "Sluice" : `${name} · Sluice`;
  }, [name]);
  useEffect(() => {
    // On the first page of a visit the focus stays where the browser has put it.
    if (visited && document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
    visited = true;
  }, [pathname]);
  return (
    <Stack gap="lg">
      <Stack gap={4}>
        {above.length > 0 && (
          <Breadcrumbs>
            {above.map(({ label, to }) => (
              <Anchor key={to} component={Link} to={to} size="sm">
                {label}
              </Anchor>
            ))}
          </Breadcrumbs>
        )}
        <Group justify="space-between" align="flex-end" gap="sm">
          <Title order={1} size="h2" ref={heading} tabIndex={-1} className="any-wrap" style={{ outline: "none" }}>
            {title}
          </Title>
          {actions !== undefined && <Group gap="xs">{actions}</Group>}
        </Group>
        {description !== undefined && (
          <Text c="dimmed" maw="46rem">
            {description}
          </Text>
        )}
      </Stack>
      {children}
    </Stack>
  );
}
let visited = false;

export function Card({
  title,
  actions,
  children,
}: {
  readonly title?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <section className="card">
      {title !== undefined && (
        <Group justify="space-between" mb="sm" gap="xs">
          <Title order={2} size="h5">
            {title}
          </Title>
          {actions}
        </Group>
      )}
      {children}
    </section>
  );
}
