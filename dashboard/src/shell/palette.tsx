/** Command palette: searches pages, and on the gateway all keys of the account and all models of the catalog. */
import { Spotlight, type SpotlightActionData, type SpotlightActionGroupData, spotlight } from "@mantine/spotlight";
import "@mantine/spotlight/styles.css";
import { CubeIcon, KeyIcon, MagnifyingGlassIcon } from "@heroicons/react/24/outline";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { useNavigate } from "react-router";
import { useQuery } from "urql";
import { PaletteSearchDocument } from "../client/generated/graphql.js";
import { useLive } from "./live.js";
import { addressOf, addressOfModel, PAGES } from "./pages.js";

/** Delay between the last keystroke and the search for keys and models. */
const DEBOUNCE_MS = 150;

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const { me } = useLive();
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed.trim(), DEBOUNCE_MS);
  const [{ data: found }] = useQuery({ query: PaletteSearchDocument, variables: { search }, pause: search === "" });
  useEffect(() => spotlight.open(), []);

  const pages = PAGES.filter(({ isForOperators }) => !isForOperators || me?.isOperator).map(({ path, label, words, icon: Icon }) => ({
    id: `page ${path}`,
    label,
    keywords: words.split(" "),
    leftSection: <Icon width={18} aria-hidden />,
    onClick: () => void navigate(addressOf(path)),
  }));
  // Spotlight filters by keywords. The gateway has already filtered keys and models, so each matches.
  const keys: SpotlightActionData[] = (search === "" ? [] : (found?.me?.apiKeys?.nodes ?? [])).map(({ id, name, start }) => ({
    id: `key ${id}`,
    label: name,
    description: `${start}…`,
    keywords: [typed],
    leftSection: <KeyIcon width={18} aria-hidden />,
    onClick: () => void navigate(`${addressOf("keys")}/${encodeURIComponent(id)}`),
  }));
  const models: SpotlightActionData[] = (search === "" ? [] : (found?.models?.nodes ?? [])).map(({ id, restId, title }) => ({
    id: `model ${id}`,
    label: restId,
    description: title,
    keywords: [typed],
    leftSection: <CubeIcon width={18} aria-hidden />,
    onClick: () => void navigate(addressOfModel(restId)),
  }));
  const groups: SpotlightActionGroupData[] = [
    { group: "Pages", actions: pages },
    ...(keys.length === 0 ? [] : [{ group: "Keys", actions: keys }]),
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
