/** What the operations about community models are called and do; a part of `operations.ts`. */
import type { Operation } from "./operation.js";

export const MY_MODEL_OPERATIONS = {
  "GET /account/my-models": {
    id: "listMyModels",
    tag: "Community models",
    summary: "The account's models and agents, newest first, and who offers them.",
    answer: "CommunityModelList",
  },
  "POST /account/my-models": {
    id: "createMyModel",
    tag: "Community models",
    summary: "Registers a model that an upstream of the account's runs.",
    description:
      "It is called by `community/<owner>/<name>`. The upstream's credential is stored encrypted and never shown. A public one needs community publisher access and becomes public after three hours.",
    answer: "CommunityModel",
    errors: ["409"],
  },
  "POST /account/my-models/endpoint-agents": {
    id: "createEndpointAgent",
    tag: "Community models",
    summary: "Registers an agent that its owner runs: called like a text model, without a credential and for nothing.",
    answer: "CommunityModel",
    errors: ["409"],
  },
  "POST /account/my-models/test": {
    id: "testMyModel",
    tag: "Community models",
    summary: "Calls an upstream once, as cheaply as its modality allows, to see whether it answers.",
    description:
      "At most once in 30 seconds for each account. The upstream is a registered model's, by its `id` alone, or is described as for a registration. Pictures and videos are asked for without a prompt, so that nothing is made.",
    answer: "CommunityModelTest",
    errors: ["404"],
  },
  "GET /account/my-models/{communityModel}": { id: "getMyModel", tag: "Community models", summary: "One model.", answer: "CommunityModel" },
  "PATCH /account/my-models/{communityModel}": {
    id: "updateMyModel",
    tag: "Community models",
    summary: "Changes the fields that are sent.",
    description:
      "On a public model a change of `paidOnly`, `imagePricing` or a price waits for three hours, and stands in `pending` meanwhile. Going private is immediate. Another address needs the `bearerToken` again.",
    answer: "CommunityModel",
  },
  "POST /account/my-models/{communityModel}/update": {
    id: "postMyModelUpdate",
    tag: "Community models",
    summary: "Changes the fields that are sent, for clients that cannot PATCH.",
    answer: "CommunityModel",
  },
  "DELETE /account/my-models/{communityModel}": {
    id: "deleteMyModel",
    tag: "Community models",
    summary: "Removes a model, or an agent with all that is kept to run it.",
    answer: "DeletedCommunityModel",
  },
  "GET /account/my-models/{communityModel}/fallback-candidates": {
    id: "listFallbackCandidates",
    tag: "Community models",
    summary: "The models that could be fallbacks of this one, the account's own first.",
    answer: "FallbackCandidateList",
  },
} as const satisfies Readonly<Record<string, Operation>>;
