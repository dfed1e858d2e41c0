// Writes key|line from standard input with acks=all, and prints what a group of two reads: ADDRESS TOPIC COUNT.
const { readFileSync, writeSync } = require("node:fs");
const { Kafka, logLevel } = require("kafkajs");

const [address, topic, count] = process.argv.slice(2);

async function main() {
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ allowAutoTopicCreation: true });
  await producer.connect();
  const lines = readFileSync(0, "utf8").split("\n").filter(Boolean);
  for (let from = 0; from < lines.length; from += 500) {
    const messages = lines.slice(from, from + 500).map((text) => {
      const bar = text.indexOf("|");
      return { key: text.slice(0, bar), value: text.slice(bar + 1) };
    });
    await producer.send({ topic, acks: -1, messages });
  }
  await producer.disconnect();

  let read = [];
  let done;
  const all = new Promise((resolve) => (done = resolve));
  const members = [0, 1].map(() => kafka.consumer({ groupId: "kafkajs" }));
  for (const member of members) {
    await member.connect();
    await member.subscribe({ topic, fromBeginning: true });
    await member.run({
      eachMessage: async ({ message }) => {
        read.push(message.value.toString());
        if (read.length === Number(count)) done();
      },
    });
  }
  await all;
  for (const member of members) await member.disconnect();
  writeSync(1, read.map((line) => line + "\n").join(""));
}

// KafkaJS now and then leaves a socket open that it opened while it disconnected, and Node waits for it for ever.
main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
