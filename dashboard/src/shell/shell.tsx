/** Frame of every page: navigation, balance, command palette, connection banner and the dialog for an ended session. */

import { ArrowTopRightOnSquareIcon, MagnifyingGlassIcon, MoonIcon, SunIcon } from "@heroicons/react/24/outline";
import {
  ActionIcon,
  Anchor,
  AppShell,
  Avatar,
  Burger,
  Button,
  Group,
  Kbd,
  NavLink,
  Text,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { Suspense, useEffect, useState } from "react";
import { Link, Outlet, NavLink as RouterLink, ScrollRestoration, useLocation } from "react-router";
import { useConnection, useIsBehind } from "../client/connection.js";
import { GATEWAY_URL, HAS_GRAPHIQL } from "../client/place.js";
import { useIsSessionEnded } from "../client/session.js";
import { formatCredits } from "../ui/credits.js";
import { lazyWithRetry } from "../ui/lazy-with-retry.js";
import { LiveProvider, useLive } from "./live.js";
import { addressOf, DASHBOARD, PAGES } from "./pages.js";

// Loaded on first use, which keeps the first page small.
const Palette = lazyWithRetry(() => import("./palette.js"));
const PersonMenu = lazyWithRetry(() => import("./person-menu.js"));
const SignIn = lazyWithRetry(() => import("./sign-in-again.js"));
const SIGN_IN_AFTER_MS = 5_000;

/** Pages outside of the dashboard, opened in a tab of their own. */
const LINKS = [
  { label: "API reference", href: `${GATEWAY_URL}/docs` },
  ...(HAS_GRAPHIQL ? [{ label: "GraphiQL", href: `${GATEWAY_URL}/graphql` }] : []),
];

export function Shell() {
  return (
    <LiveProvider>
      <Frame />
    </LiveProvider>
  );
}

function Frame() {
  const [isOpen, { toggle, close }] = useDisclosure();
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const { me } = useLive();
  const { pathname } = useLocation();
  const openPalette = () => setPaletteOpen(true);
  useHotkeys([["mod+K", openPalette]], []);
  useEffect(close, [pathname]);
  return (
    <AppShell
      header={{ height: "var(--frame-top)" }}
      navbar={{ width: "var(--frame-side)", breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      padding="md"
      withBorder
      styles={{ main: { background: "var(--paper)" }, header: { background: "var(--card)" }, navbar: { background: "var(--card)" } }}
    >
      <a className="skip-link" href="#main">
        Skip to content
      </a>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap" gap="sm">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={isOpen ? "Close navigation" : "Open navigation"}
            />
            <Anchor component={Link} to={DASHBOARD} fw={650} c="var(--ink)" underline="never" className="home">
              <span className="mark" aria-hidden />
              Sluice
            </Anchor>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Button
              variant="default"
              size="compact-sm"
              onClick={openPalette}
              leftSection={<MagnifyingGlassIcon width={16} />}
              rightSection={<Kbd size="xs">Ctrl K</Kbd>}
              visibleFrom="sm"
              c="dimmed"
            >
              Find…
            </Button>
            <ActionIcon variant="default" size={30} onClick={openPalette} hiddenFrom="sm" aria-label="Find…">
              <MagnifyingGlassIcon width={16} />
            </ActionIcon>
            <BalanceLink />
            <Scheme />
            <Person />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Pages">
        <AppShell.Section grow style={{ overflowY: "auto" }}>
          {PAGES.filter(({ isForOperators }) => !isForOperators || me?.isOperator).map(({ path, label, icon: Icon }) => (
            <NavLink
              key={path}
              component={RouterLink}
              to={addressOf(path)}
              end={path === ""}
              active={
                path === ""
                  ? pathname === "/" || pathname.replace(/\/$/, "") === DASHBOARD
                  : `${pathname}/`.startsWith(`${addressOf(path)}/`)
              }
              label={label}
              leftSection={<Icon width={18} aria-hidden />}
              py={7}
              style={{ borderRadius: "var(--radius)" }}
            />
          ))}
        </AppShell.Section>
        <AppShell.Section pt="xs" style={{ borderTop: "1px solid var(--line)" }}>
          {LINKS.map(({ label, href }) => (
            <NavLink
              key={label}
              component="a"
              href={href}
              target="_blank"
              rel="noopener"
              label={label}
              leftSection={<ArrowTopRightOnSquareIcon width={18} aria-hidden />}
              py={7}
              style={{ borderRadius: "var(--radius)" }}
            />
          ))}
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="main">
        <ConnectionBanner />
        <Outlet />
      </AppShell.Main>
      <ScrollRestoration />
      <SignInAgain />
      {isPaletteOpen && (
        <Suspense>
          <Palette onClose={() => setPaletteOpen(false)} />
        </Suspense>
      )}
    </AppShell>
  );
}

function BalanceLink() {
  const { balance } = useLive();
  const isBehind = useIsBehind();
  if (!balance) return null;
  return (
    <UnstyledButton
      component={Link}
      to={addressOf("credits")}
      aria-label={`Balance: ${formatCredits(balance.available, 2)} credits`}
      title={`${balance.available} credits`}
    >
      <Text fw={600} size="sm" aria-live="off" data-balance={balance.available} c={isBehind ? "dimmed" : "var(--ink)"}>
        {formatCredits(balance.available, 2)}
      </Text>
    </UnstyledButton>
  );
}

function Scheme() {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  const other = scheme === "dark" ? "light" : "dark";
  return (
    <ActionIcon
      variant="default"
      size={30}
      onClick={() => setColorScheme(other)}
      aria-label={`Switch to ${other} mode`}
      title={`Switch to ${other} mode`}
    >
      {scheme === "dark" ? <SunIcon width={16} /> : <MoonIcon width={16} />}
    </ActionIcon>
  );
}

/** Placeholder for the account menu, whose code loads on the first click. */
function Person() {
  const [isRequested, setRequested] = useState(false);
  const { me } = useLive();
  if (!me) return null;
  const name = me.name ?? me.handle;
  const button = (
    <UnstyledButton aria-label={`Account menu of ${name}`} aria-haspopup="menu" aria-expanded={false} onClick={() => setRequested(true)}>
      <Avatar size={30} src={me.image} alt="" />
    </UnstyledButton>
  );
  if (!isRequested) return button;
  return (
    <Suspense fallback={button}>
      <PersonMenu name={name} handle={me.handle} image={me.image} />
    </Suspense>
  );
}

function ConnectionBanner() {
  const isAway = useConnection() === "away";
  // An ended session closes the socket as well, and has a dialog of its own.
  const isSessionEnded = useIsSessionEnded();
  return (
    <div role="status">
      {isAway && !isSessionEnded && (
        <Text size="sm" className="card" mb="md" bg="var(--note)" py="xs">
          Cannot reach the gateway. Data on this page may be out of date. Reconnecting automatically; your input is kept.
        </Text>
      )}
    </div>
  );
}

function SignInAgain() {
  // Loaded ahead: when a session ends, an update may already have replaced this file on the gateway.
  useEffect(() => {
    const timer = setTimeout(() => void import("./sign-in-again.js").catch(() => {}), SIGN_IN_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return useIsSessionEnded() ? (
    <Suspense>
      <SignIn />
    </Suspense>
  ) : null;
}
