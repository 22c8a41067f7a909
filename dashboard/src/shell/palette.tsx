/** Command palette: searches pages, the account's keys and the models of the catalog. */
import { Spotlight, type SpotlightActionData, type SpotlightActionGroupData, spotlight } from "@mantine/spotlight";
import "@mantine/spotlight/styles.css";
import { CubeIcon, KeyIcon, MagnifyingGlassIcon } from "@heroicons/react/24/outline";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { useNavigate } from "react-router";
import { useQuery } from "urql";
import { PaletteKeysDocument, PaletteSearchDocument } from "../client/generated/graphql.js";
import { useLive } from "./live.js";
import { addressOf, PAGES } from "./pages.js";

/** Delay between the last keystroke and the search for models. */
const DEBOUNCE_MS = 150;

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const { me } = useLive();
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed.trim(), DEBOUNCE_MS);
  const [{ data: found }] = useQuery({ query: PaletteSearchDocument, variables: { search }, pause: search === "" });
  const [{ data: mine }] = useQuery({ query: PaletteKeysDocument });
  useEffect(() => spotlight.open(), []);

  const pages = PAGES.filter(({ isForOperators }) => !isForOperators || me?.isOperator).map(({ path, label, words, icon: Icon }) => ({
    id: `page ${path}`,
    label,
    keywords: words.split(" "),
    leftSection: <Icon width={18} aria-hidden />,
    onClick: () => void navigate(addressOf(path)),
  }));
  const keys = (mine?.me?.apiKeys?.nodes ?? []).map(({ id, name, start }) => ({
    id: `key ${id}`,
    label: name,
    description: `${start}…`,
    leftSection: <KeyIcon width={18} aria-hidden />,
    onClick: () => void navigate(`${addressOf("keys")}/${encodeURIComponent(id)}`),
  }));
  const models: SpotlightActionData[] = (search === "" ? [] : (found?.models?.nodes ?? [])).map(({ id, restId, title }) => ({
    id: `model ${id}`,
    label: restId,
    description: title,
    // Spotlight filters by keywords. The gateway has already filtered the models, so each matches.
    keywords: [typed],
    leftSection: <CubeIcon width={18} aria-hidden />,
    onClick: () => void navigate(`${addressOf("models")}/${encodeURIComponent(id)}`),
  }));
  const groups: SpotlightActionGroupData[] = [
    { group: "Pages", actions: pages },
    ...(search === "" ? [] : [{ group: "Keys", actions: keys }]),
    ...(models.length === 0 ? [] : [{ group: "Models", actions: models }]),
  ];
  return (
    <Spotlight
      actions={groups}
      query={typed}
      onQueryChange={setTyped}
      onSpotlightClose={onClose}
      shortcut={null}
      limit={12}
      scrollable
      nothingFound="No results"
      highlightQuery
      searchProps={{
        leftSection: <MagnifyingGlassIcon width={18} />,
        placeholder: "Search pages, keys and models",
        "aria-label": "Search pages, keys and models",
      }}
    />
  );
}
