/** What the operations about agents are called and do; a part of `operations.ts`. */
import type { Operation } from "./operation.js";

export const AGENT_OPERATIONS = {
  "GET /account/agents": { id: "listAgents", tag: "Agents", summary: "The account's agents, newest first.", answer: "AgentList" },
  "POST /account/agents": {
    id: "createAgent",
    tag: "Agents",
    summary: "Makes an agent, which is then a model that can be called.",
    description:
      "A prompt agent unless `type` is `code_agent`. It is called by `community/<owner>/<name>` and is free; the models that it asks are billed to whoever calls it. A public one needs community publisher access.",
    answer: "Agent",
  },
  "GET /account/agents/{agent}": { id: "getAgent", tag: "Agents", summary: "One agent.", answer: "Agent" },
  "PATCH /account/agents/{agent}": {
    id: "updateAgent",
    tag: "Agents",
    summary: "Changes the fields that are sent.",
    description: "A code agent's repository, name, title and description are fixed after its creation.",
    answer: "Agent",
  },
  "DELETE /account/agents/{agent}": {
    id: "deleteAgent",
    tag: "Agents",
    summary: "Removes an agent with its model.",
    answer: "DeletedAgent",
  },
} as const satisfies Readonly<Record<string, Operation>>;
