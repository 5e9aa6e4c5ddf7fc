package server

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/controller"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// invalidRequestText is what Apache Kafka says about a request that it cannot make sense of as a whole.
const invalidRequestText = "This most likely occurs because of a request being malformed by the client library or the " +
	"message was sent to an incompatible broker. See the broker logs for more details."

// refusal is an error of one resource within a request.
type refusal struct {
	code errcode.Code
	text string
}

func refusef(code errcode.Code, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// handleDescribeConfigs lists configs of each resource with value, source and synonyms. One resource of a type that does
// not exist fails the whole request.
func handleDescribeConfigs(b *Broker, r *Request) {
	req := r.Body.(*message.DescribeConfigsRequest)
	resp := message.NewDescribeConfigsResponse()
	malformed := false
	for i := range req.Resources {
		malformed = malformed || !config.ResourceType(req.Resources[i].ResourceType).Known()
	}
	for i := range req.Resources {
		res := &req.Resources[i]
		result := message.DescribeConfigsResult{ResourceType: res.ResourceType, ResourceName: res.ResourceName}
		text := ""
		if malformed {
			result.ErrorCode, text = int16(errcode.InvalidRequest), invalidRequestText
		} else if all, refused := b.describeResource(res); refused != nil {
			result.ErrorCode, text = int16(refused.code), refused.text
		} else {
			result.Configs = configResults(all, req.IncludeSynonyms, req.IncludeDocumentation)
		}
		result.ErrorMessage = &text
		resp.Results = append(resp.Results, result)
	}
	r.Respond(resp)
}

func (b *Broker) describeResource(res *message.DescribeConfigsResource) ([]config.Description, *refusal) {
	img, layers, only := b.Image(), b.Config(), config.OnlyNames(res.ConfigurationKeys)
	resource := config.Resource{Type: config.ResourceType(res.ResourceType), Name: res.ResourceName}
	overrides := img.Configs(resource)
	name := res.ResourceName
	switch resource.Type {
	case config.TopicResource:
		if why := controller.ValidateTopicName(name); why != "" {
			return nil, refusef(errcode.InvalidTopicException, "%s", why)
		}
		if img.Topic(name) == nil {
			return nil, refusef(errcode.UnknownTopicOrPartition, "")
		}
		return layers.DescribeTopic(overrides, only), nil
	case config.BrokerResource:
		if name == "" {
			return layers.DescribeClusterDefault(only), nil
		}
		if refused := b.describesItself(name, " or empty string,"); refused != nil {
			return nil, refused
		}
		return layers.DescribeBroker(only), nil
	case config.BrokerLoggerResource:
		if name == "" {
			return nil, refusef(errcode.InvalidRequest, "Broker id must not be empty")
		}
		if refused := b.describesItself(name, ""); refused != nil {
			return nil, refused
		}
		return b.describeLoggers(only), nil
	case config.ClientMetricsResource:
		if name == "" {
			return nil, refusef(errcode.InvalidRequest, "Client metrics subscription name must not be empty")
		}
		return layers.DescribeClientMetrics(overrides, only), nil
	default:
		if name == "" {
			return nil, refusef(errcode.InvalidRequest, "Group name must not be empty")
		}
		return layers.DescribeGroup(overrides, only), nil
	}
}

// describesItself refuses names of other brokers: each knows only its own configs.
func (b *Broker) describesItself(name, orElse string) *refusal {
	id, err := strconv.ParseInt(name, 10, 32)
	switch {
	case err != nil:
		return refusef(errcode.InvalidRequest, "Broker id must be an integer, but it is: %s", name)
	case int32(id) != b.opts.NodeID:
		return refusef(errcode.InvalidRequest, "Unexpected broker id, expected %d%s but received %s", b.opts.NodeID, orElse, name)
	}
	return nil
}

// rootLogger is the one logger there is: whoever started the broker set its level with the handler he gave it.
const rootLogger = "root"

func (b *Broker) describeLoggers(only config.Only) []config.Description {
	if only != nil && !only[rootLogger] {
		return nil
	}
	level := b.logLevel()
	return []config.Description{{Name: rootLogger, Value: &level, Source: config.DynamicLoggerSource}}
}

// logLevel is the lowest level that the broker's logger lets through, in Apache Kafka's words.
func (b *Broker) logLevel() string {
	for _, l := range []struct {
		level slog.Level
		name  string
	}{{slog.LevelDebug, "DEBUG"}, {slog.LevelInfo, "INFO"}, {slog.LevelWarn, "WARN"}, {slog.LevelError, "ERROR"}} {
		if b.log.Enabled(context.Background(), l.level) {
			return l.name
		}
	}
	return "OFF"
}

// configResults writes descriptions as the API does. A sensitive value is null, and so is a documentation nobody asked
// for.
func configResults(all []config.Description, synonyms, documentation bool) []message.DescribeConfigsResourceResult {
	out := make([]message.DescribeConfigsResourceResult, 0, len(all))
	for i := range all {
		d := &all[i]
		c := message.DescribeConfigsResourceResult{Name: d.Name, Value: d.Value, ReadOnly: d.ReadOnly,
			ConfigSource: int8(d.Source), IsSensitive: d.Sensitive, ConfigType: int8(d.Type())}
		if synonyms {
			for _, s := range d.Synonyms {
				c.Synonyms = append(c.Synonyms, message.DescribeConfigsSynonym{Name: s.Name, Value: s.Value, Source: int8(s.Source)})
			}
		}
		if documentation {
			text := d.Documentation()
			c.Documentation = &text
		}
		out = append(out, c)
	}
	return out
}
