/** What is said of registered models and of agents in the same words (docs/spec/agents.md#record, docs/spec/community-models.md#record). */
import type { ModelVisibility } from "../../services/community-models/common-input.js";
import { builder, enumValues } from "../builder.js";

export const VisibilityEnum = builder.enumType("Visibility", {
  description: "PRIVATE: its owner alone may call it. PUBLIC: everybody may.",
  values: enumValues<ModelVisibility>(["private", "public"]),
});
