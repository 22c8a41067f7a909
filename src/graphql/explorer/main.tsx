/** The explorer in the browser: GraphiQL below a bar with the key and the examples. */
import { useEditorContext, useSchemaContext } from "@graphiql/react";
import { GraphiQLInterface, GraphiQLProvider } from "graphiql";
import "graphiql/style.css";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { readApiKey, rememberApiKey } from "./api-key.js";
import { EXAMPLES } from "./examples.js";
import "./explorer.css";
import { createFetcher } from "./fetcher.js";

const root = document.getElementById("explorer");
if (root === null) throw new Error("The page has no place for the explorer.");
const fetcher = createFetcher(root.dataset.schema ?? null);

/**
 * GraphiQL names its editors' sections, but not the fields in them; and it says that a tab is an element with two buttons in it, and that
 * the button of a new one is a tab, too, which screen readers cannot tell apart. Here they are buttons in a group.
 */
function completeRoles(): void {
  for (const field of document.querySelectorAll(".CodeMirror textarea:not([aria-label])")) {
    field.setAttribute("aria-label", field.closest("[aria-label]")?.getAttribute("aria-label") ?? "Editor");
  }
  for (const scrolled of document.querySelectorAll(".CodeMirror-scroll:not([tabindex='0'])")) scrolled.setAttribute("tabindex", "0");
  for (const tabs of document.querySelectorAll(".graphiql-tabs[role=tablist]")) {
    tabs.setAttribute("role", "group");
    tabs.setAttribute("aria-label", "Operations");
  }
  for (const tab of document.querySelectorAll(".graphiql-tab")) {
    const isActive = String(tab.classList.contains("graphiql-tab-active"));
    const button = tab.querySelector(".graphiql-tab-button");
    if (tab.getAttribute("role") !== "none") tab.setAttribute("role", "none");
    tab.removeAttribute("aria-selected");
    if (button && button.getAttribute("aria-pressed") !== isActive) button.setAttribute("aria-pressed", isActive);
  }
  const session = document.querySelector("#graphiql-session[role=tabpanel]");
  session?.setAttribute("role", "region");
}

function Explorer() {
  useEffect(() => {
    const observer = new MutationObserver(completeRoles);
    observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ["class", "role", "aria-selected"] });
    completeRoles();
    return () => observer.disconnect();
  }, []);
  return (
    <GraphiQLProvider
      fetcher={fetcher}
      // Typed data is never stored where other tabs or later sessions can read it.
      storage={sessionStorage}
      shouldPersistHeaders={false}
      defaultTabs={EXAMPLES.map(({ query }) => ({ query }))}
      {...askedFor()}
    >
      <Bar />
      <GraphiQLInterface showPersistHeadersSettings={false} defaultEditorToolsVisibility={false} />
    </GraphiQLProvider>
  );
}

/** The data that a link may contain: the initial operation. */
function askedFor(): { readonly query?: string; readonly variables?: string } {
  const asked = new URLSearchParams(location.search);
  const query = asked.get("query");
  const variables = asked.get("variables");
  return { ...(query !== null && { query }), ...(variables !== null && { variables }) };
}

function Bar() {
  return (
    <header className="bar">
      <a className="home" href="/">
        Sluice
      </a>
      <ApiKey />
      <Examples />
    </header>
  );
}

/** Not a password field, because browsers offer to save those. */
function ApiKey() {
  const [key, setKey] = useState(readApiKey);
  const { introspect } = useSchemaContext({ nonNull: true });
  const remember = (typed: string) => {
    setKey(typed);
    rememberApiKey(typed.trim());
  };
  return (
    <input
      className="key"
      aria-label="API key"
      placeholder="API key, for this tab only"
      value={key}
      onChange={({ target }) => remember(target.value)}
      // For gateways where only callers with a key may read the schema.
      onBlur={introspect}
      autoComplete="off"
      autoCapitalize="off"
      spellCheck={false}
    />
  );
}

function Examples() {
  const { queryEditor, tabs, activeTabIndex, addTab, changeTab } = useEditorContext({ nonNull: true });
  const [opening, setOpening] = useState<{ readonly query: string; readonly tabCount: number } | null>(null);
  // The requested tab exists from the next rendering on.
  useEffect(() => {
    if (opening === null || tabs.length <= opening.tabCount || activeTabIndex !== tabs.length - 1) return;
    queryEditor?.setValue(opening.query);
    setOpening(null);
  }, [opening, tabs, activeTabIndex, queryEditor]);
  const open = (query: string) => {
    const index = tabs.findIndex((tab) => tab.query === query);
    if (index !== -1) return changeTab(index);
    setOpening({ query, tabCount: tabs.length });
    addTab();
  };
  return (
    <select className="examples" aria-label="Examples" value="" onChange={({ target }) => open(target.value)}>
      <option value="" disabled hidden>
        Examples
      </option>
      {EXAMPLES.map(({ title, query }) => (
        <option key={title} value={query}>
          {title}
        </option>
      ))}
    </select>
  );
}

createRoot(root).render(<Explorer />);
