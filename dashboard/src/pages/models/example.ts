/** A first request to a model, as the playground would send it. */
import type { Request } from "../playground/snippets.js";

interface Example {
  readonly restId: string;
  readonly modality: string;
  readonly voices: readonly string[];
}

const PROMPT = "A lighthouse in a storm, oil painting";
const TEXT = "Hello from the gateway.";

/** Null for realtime models, which are called over a WebSocket. */
export function exampleOf({ restId: model, modality, voices }: Example): Request | null {
  switch (modality) {
    case "TEXT": {
      const messages = [{ role: "user", content: "Say hello in five languages." }];
      return {
        path: "/v1/chat/completions",
        body: { model, messages },
        sdk: { method: "chat.completions.create" },
        graphql: {
          field: "createChatCompletion",
          type: "ChatCompletionInput",
          selection: "raw receipt { cost }",
          input: { model, messages: messages.map((message) => ({ ...message, role: "USER" })) },
        },
        print: { python: "print(answer.choices[0].message.content)", node: "console.log(answer.choices[0].message.content);" },
      };
    }
    case "IMAGE":
      return {
        path: "/v1/images/generations",
        body: { model, prompt: PROMPT },
        sdk: { method: "images.generate" },
        graphql: {
          field: "generateImage",
          type: "GenerateImageInput",
          selection: "images { base64 contentType } receipt { cost }",
          input: { model, prompt: PROMPT },
        },
      };
    case "VIDEO":
      return {
        path: "/v1/videos",
        body: { model, prompt: PROMPT },
        sdk: null,
        graphql: {
          field: "startVideo",
          type: "StartVideoInput",
          selection: "job { restId status progress }",
          input: { model, prompt: PROMPT },
        },
      };
    case "SPEECH": {
      const input = { model, input: TEXT, voice: voices[0] ?? "alloy" };
      return {
        path: "/v1/audio/speech",
        body: input,
        output: "speech.mp3",
        sdk: { method: "audio.speech.create" },
        graphql: { field: "createSpeech", type: "SpeechInput", selection: "speech { audio contentType } receipt { cost }", input },
        print: { python: 'answer.write_to_file("speech.mp3")', node: "const sound = Buffer.from(await answer.arrayBuffer());" },
      };
    }
    case "MUSIC":
      return {
        path: `/audio/${encodeURIComponent("Calm piano")}`,
        isGet: true,
        body: { model },
        output: "music.mp3",
        sdk: null,
        graphql: {
          field: "generateMusic",
          type: "MusicInput",
          selection: "music { audio contentType } receipt { cost }",
          input: { model, prompt: "Calm piano" },
        },
      };
    case "TRANSCRIPTION":
      return {
        path: "/v1/audio/transcriptions",
        body: { model },
        files: ["file"],
        sdk: { method: "audio.transcriptions.create" },
        graphql: {
          field: "createTranscription",
          type: "CreateTranscriptionInput",
          selection: "transcription { text durationSeconds } receipt { cost }",
          input: { model, file: null },
          files: ["file"],
        },
        print: { python: "print(answer.text)", node: "console.log(answer.text);" },
      };
    case "EMBEDDING": {
      const input = { model, input: [TEXT] };
      return {
        path: "/v1/embeddings",
        body: input,
        sdk: { method: "embeddings.create" },
        graphql: {
          field: "createEmbeddings",
          type: "CreateEmbeddingsInput",
          selection: "embeddings { index vector } receipt { cost }",
          input,
        },
      };
    }
    case "RERANK": {
      const input = { model, query: TEXT, documents: ["The sea is calm.", "A fox ran by."] };
      return {
        path: "/v1/rerank",
        body: input,
        sdk: null,
        graphql: { field: "rerank", type: "RerankInput", selection: "results { index relevanceScore } receipt { cost }", input },
      };
    }
    case "MODERATION":
      return {
        path: "/v1/moderations",
        body: { model, input: TEXT },
        sdk: { method: "moderations.create" },
        graphql: {
          field: "createModeration",
          type: "CreateModerationInput",
          selection: "moderation { id } receipt { cost }",
          input: { model, input: [TEXT] },
        },
      };
    default:
      return null;
  }
}
