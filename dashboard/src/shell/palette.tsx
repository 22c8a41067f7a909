/** The command palette: every page, the account's keys and the catalog's models, by parts of their names. */
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

/** The catalog is asked once somebody has stopped typing. */
const PAUSE_MS = 150;

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const { me } = useLive();
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed.trim(), PAUSE_MS);
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
    // What the catalog has found is shown, whatever of it was meant.
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
      nothingFound="Nothing is called that"
      highlightQuery
      searchProps={{
        leftSection: <MagnifyingGlassIcon width={18} />,
        placeholder: "Pages, keys and models",
        "aria-label": "Pages, keys and models",
      }}
    />
  );
}
